// SPDX-License-Identifier: Apache-2.0

/// The keys of an account on their way to another device, which only who has the secret can open.
package enum Handover {
    /// The largest that a server keeps.
    package static let bytesMax = 16_384

    /// Seals the keys. If there are too many generations, only the newest that fit: the new device
    /// does not open the history from before them.
    /// - Parameters:
    ///   - account: The account's identifier, without which the other device cannot open it.
    ///   - secret: Used for this handover alone.
    /// - Returns: Nil if not even the keys of the current generation fit, of very many stores.
    package static func seal(
        _ keyring: Keyring, of account: String, with secret: HandoverSecret
    ) -> [UInt8]? {
        keyring.sealed(with: keys(account, secret), word, bytesMax: bytesMax)
    }

    /// - Parameter account: The identifier of the account that the device has signed in to.
    /// - Returns: Nil for keys of another account, with another secret, of no generation, or of no store:
    ///   with these, no others could be joined any more.
    package static func open(
        _ bytes: [UInt8], of account: String, with secret: HandoverSecret
    ) -> Keyring? {
        let keyring = Keyring(bytes, with: keys(account, secret), word, bytesMax: bytesMax)
        return keyring.flatMap { $0.isOfNoStore ? nil : $0 }
    }

    private static let word = "ubiquity handover 1"

    private static func keys(_ account: String, _ secret: HandoverSecret) -> SealedBytes {
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

    /// - Returns: Nil for what was wrapped with another recovery key.
    package func open(_ wrap: [UInt8]) -> Keyring? {
        Keyring(wrap, with: keys, Self.word, bytesMax: Self.wrapBytesMax)
    }

    private static let word = "ubiquity recovery 1"

    private var keys: SealedBytes { SealedBytes(secret: bytes, info: SealingFields(Self.word)) }
}

extension Keyring {
    fileprivate func sealed(
        with keys: SealedBytes, _ word: String, bytesMax: Int
    ) -> [UInt8]? {
        func sealed(_ count: Int) -> [UInt8]? {
            let box = keys.seal(
                SealedText.encode(newest(count).fields), for: SealingFields(word))
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

    fileprivate init?(_ box: [UInt8], with keys: SealedBytes, _ word: String, bytesMax: Int) {
        // Each element needs more than one byte.
        var elements = bytesMax
        guard box.count <= bytesMax, let text = keys.open(box, for: SealingFields(word)),
            let fields = SealedText.decode(text, within: &elements),
            let keyring = try? Keyring(fields: fields), keyring.current > 0
        else { return nil }
        self = keyring
    }
}
