// SPDX-License-Identifier: Apache-2.0

/// What a device leaves for another one of its account, which only who has the secret can open.
package enum Handover: Hashable, Sendable {
    /// The account's keys, or those of some stores.
    case keys(Keyring)
    /// The account is sealed, and the device that leaves this does not have the key.
    case noKey
    /// The account is not sealed.
    case notSealed

    package var hasKeys: Bool { if case .keys = self { true } else { false } }

    /// The largest that a server keeps.
    package static let bytesMax = 16_384

    /// Seals it. If there are too many generations of keys, only the newest that fit: the new device does
    /// not open the history from before them.
    /// - Parameters:
    ///   - account: The account's identifier, without which the other device cannot open it.
    ///   - secret: Used for this handover alone.
    /// - Throws: ``KeyringRefusal/tooMany`` if not even the keys of the current generation fit.
    package func sealed(
        of account: String, with secret: HandoverSecret
    ) throws(KeyringRefusal) -> [UInt8] {
        let keys = Self.boxKeys(account, secret)
        switch self {
        case .keys(let keyring):
            guard let box = keyring.sealed(with: keys, Self.word, bytesMax: Self.bytesMax) else {
                throw .tooMany
            }
            return box
        case .noKey: return keys.seal(Self.noKeyText, Self.word)
        case .notSealed: return keys.seal(Self.notSealedText, Self.word)
        }
    }

    /// Opens one.
    /// - Parameter account: The identifier of the account that the device has signed in to.
    /// - Returns: Nil for one of another account or with another secret, and for keys of no generation or
    ///   of no store: with these, no others could be joined any more.
    package init?(_ box: [UInt8], of account: String, with secret: HandoverSecret) {
        let keys = Self.boxKeys(account, secret)
        switch keys.open(box, Self.word, bytesMax: Self.bytesMax) {
        case Self.noKeyText?: self = .noKey
        case Self.notSealedText?: self = .notSealed
        case let fields?:
            guard let keyring = Keyring(handed: fields), !keyring.isOfNoStore else { return nil }
            self = .keys(keyring)
        case nil: return nil
        }
    }

    private static let word = "ubiquity handover 1"
    private static let noKeyText = PropertyListValue.string("sealed")
    private static let notSealedText = PropertyListValue.string("not sealed")

    private static func boxKeys(_ account: String, _ secret: HandoverSecret) -> SealedBytes {
        var info = SealingFields(word)
        info.add(account.utf8)
        return SealedBytes(secret: secret.bytes, info: info)
    }
}

/// The secret of one handover: 128 random bits that travel by screen, camera or hand alone.
package struct HandoverSecret: TypedSecret {
    package let bytes: [UInt8]

    package static let bytesCount = 16

    package init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.bytesCount else { return nil }
        self.bytes = bytes
    }
}

/// The way into an account whose devices are all lost: 160 random bits that a person keeps on paper.
/// Each generation of the account's key has one of its own.
package struct RecoveryKey: TypedSecret {
    package let bytes: [UInt8]

    package static let bytesCount = 20
    /// The largest wrap that a server keeps.
    package static let wrapBytesMax = 4_096

    package init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.bytesCount else { return nil }
        self.bytes = bytes
    }

    /// The first recovery key of the current generation. It follows from the account's key, so that two
    /// programs which seal an account with one proposal show the same.
    /// - Returns: Nil for the keys of a confined device.
    package init?(of keyring: Keyring) {
        guard case .account(let key)? = keyring.roots[keyring.current] else { return nil }
        var info = SealingFields("ubiquity recovery key 1")
        info.add(UInt64(keyring.current))
        let derived = HKDF.derive(from: key.bytes, info: info.bytes)[0]
        self.init(Array(derived.bytes.prefix(Self.bytesCount)))
    }

    /// Seals the keys, which the account's server keeps. If there are too many generations, only the
    /// newest that fit.
    /// - Returns: Nil if not even the current generation fits, of a confined device.
    package func wrap(_ keyring: Keyring) -> [UInt8]? {
        keyring.sealed(with: keys, Self.word, bytesMax: Self.wrapBytesMax)
    }

    /// Reads what a person typed.
    /// - Throws: ``KeyringRefusal/recoveryKeyLength(_:)``, ``KeyringRefusal/recoveryKeyMistyped``.
    package init(given text: String) throws(KeyringRefusal) {
        do throws(TypedSecretFault) { try self.init(typed: text) } catch {
            switch error {
            case .length(let count): throw .recoveryKeyLength(count)
            case .mistyped: throw .recoveryKeyMistyped
            }
        }
    }

    /// - Parameter wrap: What the account's server keeps for its recovery key; empty if it has none for
    ///   this device.
    /// - Throws: ``KeyringRefusal/noRecoveryKey``, ``KeyringRefusal/recoveryKeyOther``.
    package func open(_ wrap: [UInt8]) throws(KeyringRefusal) -> Keyring {
        guard !wrap.isEmpty else { throw .noRecoveryKey }
        let fields = keys.open(wrap, Self.word, bytesMax: Self.wrapBytesMax)
        guard let keyring = fields.flatMap({ Keyring(handed: $0) }) else { throw .recoveryKeyOther }
        return keyring
    }

    private static let word = "ubiquity recovery 1"

    private var keys: SealedBytes { SealedBytes(secret: bytes, info: SealingFields(Self.word)) }
}

extension Keyring {
    fileprivate func sealed(
        with keys: SealedBytes, _ word: String, bytesMax: Int
    ) -> [UInt8]? {
        func sealed(_ count: Int) -> [UInt8]? {
            let box = keys.seal(newest(count).fields, word)
            return box.count <= bytesMax ? box : nil
        }
        // The greatest number that fits.
        var (fitting, tooMany) = ([UInt8]?.none, roots.count + 1)
        var count = 0
        while tooMany - count > 1 {
            let middle = (count + tooMany) / 2
            if let box = sealed(middle) {
                (fitting, count) = (box, middle)
            } else {
                tooMany = middle
            }
        }
        return fitting
    }

    /// Nil for no keys, and for those of no generation.
    fileprivate init?(handed fields: PropertyListValue) {
        guard let keyring = try? Keyring(fields: fields), keyring.current > 0 else { return nil }
        self = keyring
    }
}

extension SealedBytes {
    fileprivate func seal(_ value: PropertyListValue, _ word: String) -> [UInt8] {
        seal(SealedText.encode(value), for: SealingFields(word))
    }

    fileprivate func open(_ box: [UInt8], _ word: String, bytesMax: Int) -> PropertyListValue? {
        // Each element needs more than one byte.
        var elements = bytesMax
        guard box.count <= bytesMax, let text = open(box, for: SealingFields(word)) else {
            return nil
        }
        return SealedText.decode(text, within: &elements)
    }
}
