// SPDX-License-Identifier: Apache-2.0

import Ubiquity
import UbiquityCore

/// The steps by which a person seals the account that this device is signed in to.
struct AccountSealer {
    let home: DeviceHome
    /// Whether values that no key of this device opens are left out.
    var removesUnopened = false

    static let notSealed = Failure(.no, "the account is not sealed")
    static let locked = Failure(
        .noPermission,
        "the account is sealed, and this device does not have its key; `ubiquity unlock` gets it")

    /// - Throws: ``Failure`` if this device is not signed in.
    func progress() async throws -> SealingProgress {
        guard try home.load().signedIn != nil else { throw Failure.notSignedIn }
        return try await home.sealing()
    }

    /// Does all that needs no person.
    /// - Parameter finishing: Whether a person said to seal what another device began to seal.
    /// - Throws: ``Failure`` if this device is not signed in.
    func goOn(finishing: Bool = false) async throws -> SealingProgress {
        guard try home.load().signedIn != nil else { throw Failure.notSignedIn }
        return try await Progress.showing { note in
            var count = 0
            return try await home.continueSealing(
                finishing: finishing, drops: removesUnopened
            ) { _ in
                count += 1
                note(ProgressStep("Sealing", count, .stores))
            }
        }
    }

    /// - Throws: ``Failure`` if this device does not have the account's key.
    func checkKey(_ progress: SealingProgress) throws(Failure) {
        switch progress.step {
        case .propose: throw Self.notSealed
        case .getKey: throw Self.locked
        case .restored: throw Self.restored(progress)
        case .mark where progress.server.generation == 0: throw Self.notSealed
        case .mark, .adopt, .drop, .seal, .done: break
        }
    }

    /// Makes the account's next key, marks the account with it, and seals all stores.
    /// - Throws: ``Failure``, also if another device was faster.
    func mark(_ progress: SealingProgress) async throws -> SealingProgress {
        let account = progress.account
        guard try await AccountClient.ownDevice(account).stores.isEmpty,
            let proposal = try home.propose(account)
        else {
            throw Failure(
                .noPermission,
                "this device may use some stores only; use one that may use all of the account")
        }
        // Of another terminal, with the same proposal, it is the same one.
        let wrap = try newRecovery(of: proposal, RecoveryKey(of: proposal))
        do {
            try await home.mark(proposal, recovery: wrap, account)
        } catch {
            // Another device was faster, unless an earlier attempt arrived after all.
            guard let error = error as? LinkFailure, case .sealed = error.kind else { throw error }
        }
        let sealed = try await goOn()
        guard sealed.keyring?.check == proposal.check else {
            if sealed.step == .getKey {
                throw Failure(
                    .noPermission,
                    "another device has changed the account's key meanwhile; `ubiquity unlock` gets it"
                )
            }
            try checkKey(sealed)
            return sealed
        }
        let behind = try await home.awaitKey()
        if !behind.isEmpty {
            Output.note(
                "\(behind.joined(separator: ", ")) has not taken the key yet, and sends nothing until it has."
            )
        }
        return sealed
    }

    /// Shows a recovery key, and has it typed back.
    /// - Parameter key: Nil for a device that does not have the account's key.
    /// - Returns: The keys, sealed with it.
    func newRecovery(of keyring: Keyring, _ key: RecoveryKey?) throws(Failure) -> [UInt8] {
        guard let key, let wrap = key.wrap(keyring) else {
            throw Failure(.noPermission, "this device does not have the account's key")
        }
        Output.note(
            """
            This is the account's recovery key: the way in when all your devices are lost. Write it \
            down, and keep it where only you find it. It is shown this once:

                \(Output.styled(TerminalText(key.text), .bold))

            """)
        for attempt in 1...3 {
            let text = try Question.line(
                attempt == 1 ? "Type it here:" : "That is not the recovery key. Type it here:",
                otherwise: "the recovery key was not typed back, so nothing was changed")
            if RecoveryKey(text: text) == key { return wrap }
        }
        throw Failure(.no, "the recovery key was not typed back, so nothing was changed")
    }

    // MARK: - In words

    static func restored(_ progress: SealingProgress) -> Failure {
        let other = progress.server.generation
        let hasKey = progress.keyring != nil
        return Failure(
            .noPermission,
            (hasKey
                ? "this device has a key of the account"
                : "the account was sealed when this device signed in")
                + ", and the server says that "
                + (other == 0 ? "it is not sealed" : "it is sealed with an older one")
                + ": it was restored from a backup, the account was reset, or it is not honest; nothing "
                + "is sent. If you trust it, "
                + (hasKey
                    ? "save what you need with `ubiquity export`, and then run "
                        + "`ubiquity sign-out --wipe` and sign in again"
                    : "run `ubiquity sign-out` and sign in again"))
    }

    /// - Parameter isQuestion: Whether it is no failure that this device does not have the key.
    func report(
        _ progress: SealingProgress, _ json: JSONOption, isQuestion: Bool = false
    ) async throws {
        if !isQuestion { try checkKey(progress) }
        if progress.step == .restored { throw Self.restored(progress) }
        let (author, reset) = (
            Phrase.author(of: progress.server), Phrase.announcedReset(of: progress.server)
        )
        json.print(
            progress.json,
            or: TerminalText(
                [progress.sentence, author.map { "It was sealed \($0)." }, reset]
                    .compactMap(\.self).joined(separator: " ")))
    }
}

extension SealingProgress {
    fileprivate var hasKey: Bool { keyring != nil && step != .getKey }

    /// Nil if this device cannot know it.
    private var hasRecovery: Bool? {
        guard server.recovery.isEmpty else { return true }
        return keyring == nil || keyring?.check == nil ? nil : false
    }

    fileprivate var json: JSON {
        [
            "sealed": .boolean(server.generation > 0),
            "generation": .integer(Int(server.generation)), "hasKey": .boolean(hasKey),
            "unsealed": .array(server.unsealed.map { .string($0.string) }),
            "recovery": server.generation == 0 ? .null : hasRecovery.map(JSON.boolean) ?? .null,
            "sealedBy": server.author.map { author in
                [
                    "device": .string(author.device.description), "name": .string(author.name),
                    "time": .string(Phrase.isoTime(author.milliseconds)),
                ]
            } ?? .null,
            "ends": server.ends.map { .string(Phrase.isoTime($0)) } ?? .null,
        ]
    }

    fileprivate var sentence: String {
        switch step {
        case .mark where server.generation > 0:
            return "A change of the account's key was begun; `ubiquity encryption rotate` goes on."
        case .propose, .mark, .drop:
            return
                "The account is not sealed: its server can read the values. `ubiquity encryption on` "
                + "seals it."
        case .getKey: return Phrase.locked
        case .seal:
            let stores = server.unsealed.map(\.string).joined(separator: ", ")
            return
                "The account is sealed, but these stores are not yet: \(stores). "
                + "`ubiquity encryption on` goes on."
        case .adopt, .done, .restored:
            let recovery =
                hasRecovery == false
                ? " There is no recovery key; `ubiquity encryption recovery --new` makes one." : ""
            return
                "The account is sealed, and so are all of its stores."
                + recovery
        }
    }
}
