// SPDX-License-Identifier: Apache-2.0

/// The keys of a sealed account on their way to a device. What is asked here concerns no store, and
/// changes nothing.
enum Unlocking {
    /// - Returns: Nil for a word that is not one of these. With `problem`, a sentence, if it cannot be.
    static func answer(
        to word: ExactString, _ event: StoredFields
    ) throws(StoredFieldError) -> PropertyListValue? {
        switch word {
        case "code": return try code(event)
        case "unlock": return try unlock(event)
        case "handOver": return try handOver(event)
        default: return nil
        }
    }

    // MARK: - Codes

    /// What a code says that a person typed or scanned, and where its keys are in an account; without
    /// it, a new code of a device that waits for keys.
    private static func code(_ event: StoredFields) throws(StoredFieldError) -> PropertyListValue {
        guard let text = try typed(event) else {
            let asked = UnlockRequest(stores: try stores(event))
            let code = KeyCode(front: asked.front, secret: newSecret())
            return .fields(["code": .string(code.text)])
        }
        guard let code = KeyCode(text) else { return problem(KeyCode.mistyped) }
        let front = PropertyListValue.string(code.front)
        guard let account = try event.string("account") else {
            guard !code.isSecretAlone else { return problem(KeyCode.secretAlone) }
            return .fields(["front": front])
        }
        let path: String
        if let secret = code.secret {
            path = "/v1/handovers/" + HandoverName(of: secret, in: account).text
        } else if RecoveryKey(text: text) != nil {
            path = "/v1/sealing"
        } else {
            return problem(
                "this is neither a code with keys nor a recovery key, or it was mistyped")
        }
        return .fields([
            "front": front, "path": .string(path),
            "isAwaited": .boolean(UnlockRequest(front: code.front) != nil),
        ])
    }

    /// The stores that the device may use which shows a code; empty for all.
    private static func stores(
        _ event: StoredFields
    ) throws(StoredFieldError) -> [StoreIdentifier] {
        var stores: [StoreIdentifier] = []
        for store in try event.array("stores") ?? [] {
            guard case .string(let name) = store, let store = try? StoreIdentifier(name.string)
            else { throw .otherType("stores") }
            stores.append(store)
        }
        return stores
    }

    private static func newSecret() -> HandoverSecret? {
        var (generator, bytes) = (SystemRandomNumberGenerator(), [UInt8]())
        for _ in 0..<HandoverSecret.bytesCount / 8 {
            bytes.append(bigEndian: generator.next() as UInt64)
        }
        return HandoverSecret(bytes)
    }

    // MARK: - Keys

    /// Opens the keys that are in the server's answer, in JSON: a `Handover`, or the `Sealing` with
    /// what it keeps for the recovery key.
    ///
    /// With `mark`, the server's `Sealing` in JSON, keys of a handover must be those of the mark, as
    /// keys of the recovery key always must. With `keyring`, which the device has, both are joined.
    private static func unlock(
        _ event: StoredFields
    ) throws(StoredFieldError) -> PropertyListValue {
        let (code, account) = (try typed(event) ?? "", try event.text("account"))
        let answer = try event.data("answer") ?? []
        let mark = try event["mark"] == nil ? nil : event.data("mark")
        let known = try event["keyring"].map { value throws(StoredFieldError) in
            try Keyring(fields: value)
        }
        let keyring: Keyring?
        var marked: (generation: UInt32, check: Bytes32?)?
        do throws(WireFault) {
            let answer = try WireFields(answer, within: .small)
            if let secret = KeyCode(code)?.secret {
                keyring = try bytes(answer, "box").flatMap {
                    Handover.open($0, of: account, with: secret)
                }
                if let mark { marked = try self.mark(WireFields(mark, within: .small)) }
            } else {
                keyring = try bytes(answer, "recovery").flatMap {
                    RecoveryKey(text: code)?.open($0)
                }
                marked = try self.mark(answer)
            }
        } catch { return problem("the server's answer cannot be read: \(error.description)") }
        if marked?.generation == 0 {
            return problem(
                "the account is not sealed, according to its server: it needs no key. If this device is "
                    + "locked, the account was reset, or the server is not honest: sign in anew")
        }
        guard let keyring else {
            return problem(
                "the code does not open the account's keys: it belongs to others, or to older ones")
        }
        do throws(KeyringRefusal) {
            if let marked { try keyring.check(generation: marked.generation, check: marked.check) }
            let joined = try known?.joined(with: keyring) ?? keyring
            return .fields(["keyring": joined.fields])
        } catch { return problem(error.description) }
    }

    private static func mark(
        _ answer: WireFields
    ) throws(WireFault) -> (generation: UInt32, check: Bytes32?) {
        (
            UInt32(clamping: try answer.number("generation")),
            try bytes(answer, "check").flatMap { Bytes32($0) }
        )
    }

    private static func bytes(
        _ answer: WireFields, _ name: ExactString
    ) throws(WireFault) -> [UInt8]? {
        Base64.decode(try answer.text(name).utf8)
    }

    /// Seals the keys of this device for the one that waits for them and shows a code.
    private static func handOver(
        _ event: StoredFields
    ) throws(StoredFieldError) -> PropertyListValue {
        guard let code = KeyCode(try typed(event) ?? "") else { return problem(KeyCode.mistyped) }
        guard let secret = code.secret, let asked = UnlockRequest(front: code.front) else {
            return problem("this is not the code of a device that waits for keys")
        }
        guard let fields = event["keyring"] else {
            return problem(UnlockRequest.lackingKeys)
        }
        let account = try event.text("account")
        let keyring = try Keyring(fields: fields)
        guard let keys = asked.keys(of: keyring) else { return problem(UnlockRequest.lackingKeys) }
        guard let box = Handover.seal(keys, of: account, with: secret) else {
            return problem("the keys of so many stores do not fit")
        }
        return .fields([
            "path": .string("/v1/handovers/" + HandoverName(of: secret, in: account).text),
            "box": .string(String(decoding: Base64.encode(box), as: UTF8.self)),
        ])
    }

    /// The code, without blanks around it. Nil if there is none.
    private static func typed(_ event: StoredFields) throws(StoredFieldError) -> String? {
        guard let text = try event.string("code") else { return nil }
        let blank: UInt8 = 0x20
        var bytes = Array(text.utf8)[...]
        while let first = bytes.first, first <= blank { bytes.removeFirst() }
        while let last = bytes.last, last <= blank { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func problem(_ sentence: String) -> PropertyListValue {
        .fields(["problem": .string(sentence)])
    }
}
