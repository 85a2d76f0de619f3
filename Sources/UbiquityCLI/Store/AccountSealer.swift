// SPDX-License-Identifier: Apache-2.0

import Ubiquity
import UbiquityCore

/// The steps by which a person seals the account that this device is signed in to.
struct AccountSealer {
    let home: DeviceHome

    static let notSealed = Failure(.no, "the account is not sealed")
    static let locked = Failure(
        .noPermission, "\(LinkStatus.locked); `ubiquity unlock` gets it")

    /// - Throws: ``Failure`` if this device is not signed in.
    func progress() async throws -> SealingProgress {
        guard try home.load().signedIn != nil else { throw Failure.notSignedIn }
        return try await home.sealing()
    }

    /// Does all that needs no person.
    /// - Parameters:
    ///   - plan: That of the account's key, if it was made just now.
    ///   - finishing: Whether a person said to seal what another device began to seal.
    ///   - isRestored: Whether a person said that the server was restored.
    ///   - asks: Whether to ask before it removes what no device has.
    /// - Throws: ``Failure`` if this device is not signed in.
    func goOn(
        _ plan: SealingPlan? = nil, finishing: Bool = false, isRestored: Bool = false,
        asks: Bool = false
    ) async throws -> SealingProgress {
        guard try home.load().signedIn != nil else { throw Failure.notSignedIn }
        var plan = plan
        while true {
            do {
                return try await seal(plan, finishing: finishing, isRestored: isRestored)
            } catch SealingError.unopened(let store, let keys) where asks {
                guard let keyring = try home.load().keyring else { throw Self.locked }
                var next = plan ?? SealingPlan(keyring)
                try confirmRemoval(of: keys, from: store, in: &next)
                plan = next
            }
        }
    }

    private func seal(
        _ plan: SealingPlan?, finishing: Bool, isRestored: Bool
    ) async throws -> SealingProgress {
        try await Progress.showing { note in
            var count = 0
            return try await home.continueSealing(
                plan, finishing: finishing, isRestored: isRestored
            ) { store, whole in
                count += 1
                note(ProgressStep("Sealing", count, .stores))
                // The others were told of with the plan.
                let known = Set(plan?.stores[store]?.rewritten ?? [])
                tell(whole.rewritten.filter { !known.contains($0) }, of: store)
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
        case .mark, .seal, .done: break
        }
    }

    /// Looks at all stores, as they would be with the account's next key, or with this device's at a
    /// server that was restored. Says what was not written by a device with the key, and what the history
    /// still has of it. Changes nothing.
    /// - Throws: ``Failure``, also for what no device has, unless a person says that it is to be removed.
    func plan(_ progress: SealingProgress) async throws -> SealingPlan {
        let ofSome = Failure(
            .noPermission,
            "this device may use some stores only; use one that may use all of the account")
        guard try await AccountClient.ownDevice(progress.account).stores.isEmpty else {
            throw ofSome
        }
        let devices = try await AccountClient.devices(progress.account)
        let found = try await Progress.showing { note in
            var count = 0
            return try await home.plan(progress) {
                count += 1
                note(ProgressStep("Reading", count, .stores))
            }
        }
        guard var plan = found else { throw ofSome }
        let present = Set(devices.compactMap { DeviceID($0.id) })
        for (store, whole) in plan.stores.sorted(by: { $0.key.string < $1.key.string }) {
            tell(whole.rewritten, of: store, devices)
            tell(plan.versions[store]?.replaced(byOthersThan: present) ?? [], of: store)
            try confirmRemoval(of: whole.unopened.map(\.key), from: store, in: &plan)
        }
        return plan
    }

    /// Marks the account with the plan's key, and seals all stores.
    /// - Throws: ``Failure``, also if another device was faster.
    func mark(_ plan: SealingPlan, after progress: SealingProgress) async throws -> SealingProgress
    {
        // Of a plan that was interrupted, it is the same one.
        let wrap = try newRecovery(of: plan.keyring, RecoveryKey(of: plan.keyring))
        do { try await home.mark(plan, recovery: wrap, after: progress) } catch {
            // Another device was faster, unless an earlier attempt arrived after all.
            guard let error = error as? LinkFailure, case .sealed = error.kind else { throw error }
        }
        let sealed = try await goOn(
            plan, isRestored: progress.step == .restored, asks: true)
        guard sealed.keyring?.check == plan.keyring.check else {
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

    // MARK: - What others wrote

    /// Says what is written anew, because no key opens what the server has.
    private func tell(_ boxes: [Record], of store: StoreIdentifier, _ devices: [ServerDevice] = [])
    {
        let writes = Dictionary(grouping: boxes, by: \.stamp).sorted { $0.key < $1.key }
        for (stamp, boxes) in writes {
            let id = stamp.device.description
            let name = devices.first { $0.id == id }?.name ?? "a device that is signed out now"
            Output.note(
                """
                \(Phrase.names(Set(boxes.map(\.key.whole)).sorted())) of \(store.string): overwritten \
                \(Phrase.time(stamp.timestamp.milliseconds)) by \(name) (\(id.shortID)) with what no key \
                of the account opens. The last value that one does is written anew.
                """)
        }
    }

    /// Says what devices that are signed out now have changed, and how it is brought back.
    private func tell(_ replaced: [RecordVersion], of store: StoreIdentifier) {
        // A key that looks like an option would be one.
        let replaced = replaced.filter { !$0.record.key.string.hasPrefix("-") }
        let changes = Dictionary(grouping: replaced) { $0.ended?.milliseconds ?? 0 }
            .sorted { $0.key > $1.key }
        guard !changes.isEmpty else { return }
        Output.note(
            """
            Devices that are signed out now have changed or removed values of \(store.string). What was \
            there is gone with the history; to bring it back, answer no, and run first:
            """)
        for (milliseconds, versions) in changes.prefix(Self.changesShown) {
            let keys = Set(versions.map(\.record.key.whole)).sorted()
                .map { Phrase.word($0.string) }.joined(separator: " ")
            Output.note(
                """
                    ubiquity rewind --store \(store.string) --to \(Phrase.isoTime(milliseconds - 1)) \
                --keys \(keys)
                """)
        }
        let more = changes.count - Self.changesShown
        if more > 0 { Output.note("    and \(more) earlier times: see `ubiquity history`") }
    }

    private static let changesShown = 20

    /// - Throws: ``Failure`` unless a person says that these are to be removed. No option says so:
    ///   another device may have what they have replaced.
    private func confirmRemoval(
        of keys: [Key], from store: StoreIdentifier, in plan: inout SealingPlan
    ) throws {
        guard !keys.isEmpty else { return }
        guard Output.isAskable else { throw SealingError.unopened(store, keys) }
        try Question.confirm(
            """
            No key of the account opens \(Phrase.names(Set(keys.map(\.whole)).sorted())) of \
            \(store.string), and neither this device nor the history has anything in the place. A \
            device that has been in the account for longer may have it. Remove them for good?
            """, isGiven: false, otherwise: "nothing was changed")
        plan.removed[store, default: []].formUnion(keys)
    }

    // MARK: - In words

    static func restored(_ progress: SealingProgress) -> Failure {
        let other = progress.server.generation
        let hasKey = progress.keyring != nil
        return Failure(
            .noPermission,
            (hasKey
                ? "this device has a key of the account"
                : "the account was sealed when this device last heard of it")
                + ", and the server says that "
                + (other == 0 ? "it is not sealed" : "it is sealed with an older one")
                + ": it was restored from a backup, the account's sealing was ended, or it is not honest; "
                + "nothing is sent. If you know that it was restored, "
                + (progress.canRestoreMark
                    ? "`ubiquity encryption on` gives it the key back"
                    : "run `ubiquity encryption on` on a device that has both keys, and then "
                        + "`ubiquity unlock` here")
                + ". If the sealing was ended, run `ubiquity sign-out` and sign in again, which asks"
        )
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
        case .propose, .mark:
            return
                "The account is not sealed: its server can read the values. `ubiquity encryption on` "
                + "seals it."
        case .getKey: return Phrase.locked
        case .seal:
            let stores = server.unsealed.map(\.string).joined(separator: ", ")
            return
                "The account is sealed, but these stores are not yet: \(stores). "
                + "`ubiquity encryption on` goes on."
        case .done, .restored:
            let recovery =
                hasRecovery == false
                ? " There is no recovery key; `ubiquity encryption recovery --new` makes one." : ""
            return
                "The account is sealed, and so are all of its stores."
                + recovery
        }
    }
}
