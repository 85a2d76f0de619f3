// SPDX-License-Identifier: Apache-2.0

/// A question about codes and keys of an account, which concerns no store and changes nothing: what this
/// device gives others, and what it takes, is a ``SealingSession``'s to say.
struct KeyQuestion {
    private let session: SealingSession
    /// Nil for a new one.
    private let code: String?
    /// The stores that a device may use; empty for all.
    private let stores: [StoreIdentifier]
    private let hadSealed: Bool
    /// What the server has at the path of the code, in JSON; nil if there is nothing.
    private let answer: [UInt8]?
    /// The server's `Sealing`, in JSON.
    private let mark: [UInt8]?

    /// - Returns: Nil for a word that is not one of these. With `problem`, a sentence, if it cannot be.
    static func answer(
        to word: ExactString, _ event: StoredFields
    ) throws(StoredFieldError) -> PropertyListValue? {
        guard ["code", "signIn", "unlock", "handOver"].contains(word) else { return nil }
        let question = try KeyQuestion(event)
        do throws(KeyringRefusal) {
            switch word {
            case "code": return try question.readCode()
            case "signIn": return try question.signIn()
            case "unlock": return try question.unlock()
            default: return try question.handOver()
            }
        } catch { return .fields(["problem": .string(error.description)]) }
    }

    private init(_ event: StoredFields) throws(StoredFieldError) {
        let keyring = try event["keyring"].map { value throws(StoredFieldError) in
            try Keyring(fields: value)
        }
        session = SealingSession(
            account: try event.string("account") ?? "", keyring: keyring,
            isSealed: try event.boolean("isSealed") ?? false)
        code = try event.string("code")
        hadSealed = try event.boolean("hadSealed") ?? false
        (answer, mark) = (try event.data("answer"), try event.data("mark"))
        var stores: [StoreIdentifier] = []
        for store in try event.array("stores") ?? [] {
            guard case .string(let name) = store, let store = try? StoreIdentifier(name.string)
            else { throw .otherType("stores") }
            stores.append(store)
        }
        self.stores = stores
    }

    // MARK: - Codes

    /// What a code says that a person typed or scanned, and where something was left for its secret in an
    /// account; without it, a new code of a device that waits for keys.
    private func readCode() throws(KeyringRefusal) -> PropertyListValue {
        guard let code else {
            let front = UnlockRequest(stores: stores).front
            return .fields(["code": .string(KeyCode(front: front, secret: Self.newSecret()).text)])
        }
        guard !session.account.utf8.isEmpty else {
            return .fields(["front": .string(try KeyCode(given: code).front)])
        }
        let path: String
        switch try UnlockSecret(given: code) {
        case .handover(let secret): path = self.path(secret)
        case .recovery: path = "/v1/sealing"
        }
        let front = KeyCode(code).flatMap { UnlockRequest(front: $0.front) }
        return .fields(["path": .string(path), "isAwaited": .boolean(front != nil)])
    }

    private func path(_ secret: HandoverSecret) -> String {
        "/v1/handovers/" + HandoverName(of: secret, in: session.account).text
    }

    private static func newSecret() -> HandoverSecret? {
        var (generator, bytes) = (SystemRandomNumberGenerator(), [UInt8]())
        for _ in 0..<HandoverSecret.bytesCount / 8 {
            bytes.append(bigEndian: generator.next() as UInt64)
        }
        return HandoverSecret(bytes)
    }

    // MARK: - Keys

    /// What the device learns of the account at its sign-in, by a code that may have a secret. With
    /// `doubt`, a sentence, if a person has to be asked.
    private func signIn() throws(KeyringRefusal) -> PropertyListValue {
        let secret = code.flatMap { KeyCode($0)?.secret }
        let mark = try readMark()
        var session = session
        let doubt = try session.signIn(
            secret.flatMap { handover($0) }, isAwaited: secret != nil, hadSealed: hadSealed,
            generation: mark.generation, check: mark.check)
        return .fields([
            "keyring": session.keyring?.fields, "isSealed": .boolean(session.isSealed),
            "doubt": doubt.map { .string($0.description) },
        ])
    }

    private func unlock() throws(KeyringRefusal) -> PropertyListValue {
        let mark = try readMark()
        guard mark.generation > 0 else { throw .notSealed }
        let keyring: Keyring
        switch try UnlockSecret(given: code ?? "") {
        case .recovery(let key): keyring = try key.open(mark.recovery)
        case .handover(let secret):
            guard case .keys(let handed)? = handover(secret) else { throw .noKeys }
            keyring = handed
        }
        var session = session
        try session.unlock(with: keyring, generation: mark.generation, check: mark.check)
        return .fields(["keyring": session.keyring?.fields])
    }

    /// What this device leaves for the one that shows a code.
    private func handOver() throws(KeyringRefusal) -> PropertyListValue {
        let code = try KeyCode(given: code ?? "")
        guard let secret = code.secret else { throw .notOfLocked }
        let handover: Handover
        if let asked = UnlockRequest(front: code.front) {
            handover = try session.handover(for: asked)
        } else {
            handover = session.handover(toStores: stores, generation: try readMark().generation)
        }
        let box = try handover.sealed(of: session.account, with: secret)
        return .fields([
            "path": .string(path(secret)),
            "box": .string(String(decoding: Base64.encode(box), as: UTF8.self)),
            "isSealed": .boolean(handover != .notSealed),
        ])
    }

    /// Nil for what cannot be read, like nothing.
    private func handover(_ secret: HandoverSecret) -> Handover? {
        guard let answer, let fields = try? WireFields(answer, within: .small),
            let box = try? Self.bytes(fields, "box")
        else { return nil }
        return Handover(box, of: session.account, with: secret)
    }

    private func readMark() throws(KeyringRefusal) -> (
        generation: UInt32, check: Bytes32?, recovery: [UInt8]
    ) {
        do throws(WireFault) {
            let mark = try WireFields(mark ?? [], within: .small)
            return (
                UInt32(clamping: try mark.number("generation")),
                try Self.bytes(mark, "check").flatMap { Bytes32($0) },
                try Self.bytes(mark, "recovery") ?? []
            )
        } catch { throw .unreadable }
    }

    private static func bytes(
        _ answer: WireFields, _ name: ExactString
    ) throws(WireFault) -> [UInt8]? {
        Base64.decode(try answer.text(name).utf8)
    }
}
