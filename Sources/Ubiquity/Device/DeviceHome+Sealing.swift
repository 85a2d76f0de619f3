// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore

/// How far the sealing of the account is that a device is signed in to.
package struct SealingProgress: Hashable, Sendable {
    package var account: SignedInAccount
    /// With the server's mark taken.
    package var session: SealingSession
    package var server: ServerSealing
    package var step: SealingStep

    init(_ account: SignedInAccount, _ state: DeviceState, _ server: ServerSealing) {
        self.account = account
        self.server = server
        session = state.sealing ?? SealingSession(account: account.account, keyring: nil)
        step = session.mark(
            generation: server.generation, check: server.check, unsealed: server.unsealed)
    }

    /// The device's keys; nil if it has none.
    package var keyring: Keyring? { session.keyring }

    /// Whether the device knows that the account is sealed, whatever the server says.
    package var isSealed: Bool { session.isSealed }

    /// Whether the account is sealed with a key that this device does not have.
    package var isLocked: Bool { server.generation > 0 && step == .getKey }

    /// Whether the device can give the server back the key that it had before it was restored.
    package var canRestoreMark: Bool {
        guard step == .restored, let keyring, keyring.check != nil else { return false }
        return server.generation == 0 || keyring.proof(of: server.generation) != nil
    }
}

/// A key for an account, and what its stores would be with it: looked at before the server is told of
/// the key, so that nothing is in the way afterwards.
package struct SealingPlan: Sendable {
    /// The keys with which the account is to be sealed.
    package var keyring: Keyring
    /// What the stores have that nobody with the key has written, without the records.
    package var stores: [StoreIdentifier: SealedWhole] = [:]
    /// The history of the stores, which sealing erases; what came last first.
    package var versions: [StoreIdentifier: [RecordVersion]] = [:]
    /// The keys of what no device has any more: a person says that they are to be removed.
    package var removed: [StoreIdentifier: Set<Key>] = [:]

    package init(_ keyring: Keyring) { self.keyring = keyring }
}

/// The reason a store was not sealed.
package enum SealingError: Error, Hashable, Sendable {
    /// The device is signed in to another account by now, or to none.
    case signedOut
    /// Nobody with the key has written these values of the store, and this device has none in their
    /// place.
    case unopened(StoreIdentifier, [Key])
    /// The server has what a sealed store does not have.
    case fault(StoreIdentifier, SealingFault)
    /// The device has no key of the store.
    case noKey(StoreIdentifier)
    /// The store changed whenever it was read.
    case restless(StoreIdentifier)
    /// The device has another key or proposal by now, because another program has gone on.
    case otherProposal
}

extension DeviceHome {
    /// - Throws: ``LinkFailure``, ``HomeError``, ``SealingError/signedOut``.
    package func sealing() async throws -> SealingProgress {
        guard let account = try load().signedIn else { throw SealingError.signedOut }
        let server = try await AccountClient.sealing(account)
        let state = try state(of: account)
        let progress = SealingProgress(account, state, server)
        if progress.isSealed, !state.isSealed {
            try change(account) { $0.sealing?.isSealed = true }
        }
        return progress
    }

    /// Does all that needs no person: keeps or drops the proposal, and seals the stores, one after the
    /// other. Any device with the key can do it, as often as it likes.
    /// - Parameters:
    ///   - plan: The plan of the key, if it was made on this device.
    ///   - finishing: Whether a person has said that another device began to seal the stores.
    ///   - isRestored: Whether a person has said that the server was restored.
    ///   - sealed: Called for each store that this device has sealed.
    /// - Returns: The progress, whose step needs a person, or is ``SealingStep/done``.
    /// - Throws: ``LinkFailure``, ``HomeError``, ``SealingError``, `LocalStorageError`.
    package func continueSealing(
        _ plan: SealingPlan? = nil, finishing: Bool = false, isRestored: Bool = false,
        sealed: (StoreIdentifier, SealedWhole) -> Void = { _, _ in }
    ) async throws -> SealingProgress {
        var attempts = 0
        var done: Set<StoreIdentifier> = []
        while true {
            var progress = try await sealing()
            try change(progress.account) { state in
                progress = SealingProgress(progress.account, state, progress.server)
                state.sealing = progress.session
            }
            guard case .seal(let store) = progress.step,
                finishing || isRestored || progress.session.proposal != nil
            else { return progress }
            guard !done.contains(store) else { throw SealingError.restless(store) }
            if let whole = try await seal(store, progress, plan, isRestored: isRestored) {
                attempts = 0
                done.insert(store)
                sealed(store, whole)
                continue
            }
            // Others write, or seal it too.
            guard attempts < Self.attemptsMax else { throw SealingError.restless(store) }
            try await Task.sleep(for: .milliseconds(100 << min(attempts, 6)))
            attempts += 1
        }
    }

    private static let attemptsMax = 20

    /// - Returns: Nil if it is to be read again.
    private func seal(
        _ store: StoreIdentifier, _ progress: SealingProgress, _ plan: SealingPlan?,
        isRestored: Bool
    ) async throws -> SealedWhole? {
        guard let keyring = progress.keyring else { throw SealingError.noKey(store) }
        do {
            let (whole, cursor) = try await whole(
                store, progress, of: keyring.current, plan, isRestored: isRestored)
            let unopened = whole.unopened.map(\.key).filter {
                plan?.removed[store]?.contains($0) != true
            }
            guard unopened.isEmpty else { throw SealingError.unopened(store, unopened) }
            try await AccountClient.replace(
                store, by: whole.records, at: cursor, keyring: keyring, progress.account)
            return whole
        } catch let error as LinkFailure {
            switch error.kind {
            case .busy(let milliseconds):
                try await Task.sleep(for: .milliseconds(min(milliseconds, Self.pauseMax)))
            case .sealed: break
            default:
                guard error.code == "store-changed" else { throw error }
            }
            return nil
        }
    }

    /// In milliseconds.
    private static let pauseMax: Int64 = 10_000

    /// The whole store, sealed with the key of a generation.
    private func whole(
        _ store: StoreIdentifier, _ progress: SealingProgress, of generation: UInt32,
        _ plan: SealingPlan?, isRestored: Bool
    ) async throws -> (SealedWhole, Cursor) {
        let account = progress.account
        var agreed = try agreed(on: store, account)
        let found = try await AccountClient.wholeStore(
            store, generation: progress.server.generation, account)
        for (key, record) in plan?.versions[store]?.lastOpened ?? [:] {
            agreed[key] = agreed[key]?.merged(with: record) ?? record
        }
        var session = progress.session
        if session.keyring?.current != generation { session.proposal = plan?.keyring }
        let whole: SealedWhole?
        do throws(SealingFault) {
            whole = try session.store(
                store, found, agreed: agreed, generation: generation,
                by: DeviceID(account.device) ?? .unassigned, at: SystemClock.reading().wall,
                run: .random(in: .min ... .max), isRestored: isRestored)
        } catch { throw SealingError.fault(store, error) }
        guard let whole else { throw SealingError.noKey(store) }
        return (whole, found.cursor)
    }

    /// What this device has agreed on with the server of the account, by key; empty if it never had the
    /// store.
    private func agreed(
        on store: StoreIdentifier, _ account: SignedInAccount
    ) throws -> [Key: Record] {
        let path = try storePath(for: store.string, folder: try state(of: account).folder)
        guard try hasStore(at: path) else { return [:] }
        let inspection = try StoreInspection(path: path)
        guard inspection.meta.account == account.account else { return [:] }
        let records = inspection.entries.compactMap(\.confirmed).filter { !$0.content.isSealed }
        return Dictionary(records.map { ($0.key, $0) }) { $1 }
    }

    // MARK: - Keys

    /// Looks at all stores of the account, as they would be with its next key: the proposal, if there
    /// is one, or a new one, which is nowhere but in memory. At a server that was restored, it is the
    /// key that this device has.
    /// - Parameter looking: Called for each store.
    /// - Returns: Nil for a confined device, which cannot make a key.
    /// - Throws: ``LinkFailure``, ``HomeError``, `LocalStorageError`, ``SealingError``. Nothing is
    ///   changed in any case.
    package func plan(
        _ progress: SealingProgress, looking: () -> Void
    ) async throws -> SealingPlan? {
        let isRestored = progress.step == .restored
        let next =
            isRestored
            ? progress.keyring
            : progress.session.proposal
                ?? (progress.keyring ?? Keyring([:])).adding(
                    .random(), at: SystemClock.reading().wall / 1_000)
        guard let keyring = next else { return nil }
        var plan = SealingPlan(keyring)
        for name in try await AccountClient.stores(progress.account).map(\.identifier) {
            guard let store = try? StoreIdentifier(name) else { continue }
            looking()
            if let present = progress.keyring, present.current == progress.server.generation {
                plan.versions[store] = try await history(of: store, progress.account, present)
            }
            var (whole, _) = try await whole(
                store, progress, of: keyring.current, plan, isRestored: isRestored)
            whole.records = []
            plan.stores[store] = whole
        }
        return plan
    }

    /// As much of it as a program reads.
    private func history(
        of store: StoreIdentifier, _ account: SignedInAccount, _ keyring: Keyring
    ) async throws -> [RecordVersion] {
        var reading = HistoryReading(of: nil, newest: HistoryReading.versionsMax)
        var place: String?
        repeat {
            let page = try await AccountClient.history(of: store, from: place, account, keyring)
            place = (try? reading.take(page)) ?? nil
        } while place != nil
        return reading.versions
    }

    /// Keeps the plan's key as a proposal, and then seals the account with its mark. A server that was
    /// restored gets the key that this device has, which is no proposal.
    /// - Parameter wrap: The keys, sealed with a recovery key that was typed back.
    /// - Throws: ``LinkFailure``, as `AccountClient.seal`; ``HomeError``;
    ///   ``SealingError/otherProposal`` if another program of this device has gone on meanwhile. Nothing
    ///   is changed, unless it is not known whether the server has taken the mark.
    package func mark(
        _ plan: SealingPlan, recovery wrap: [UInt8], after progress: SealingProgress
    ) async throws {
        let isProposed = progress.step != .restored
        if isProposed {
            try change(progress.account) { state in
                guard state.keyring == progress.keyring,
                    state.proposal == nil || state.proposal == plan.keyring
                else { throw SealingError.otherProposal }
                // It must be on the disk before the server has its mark.
                state.proposal = plan.keyring
            }
        }
        do {
            try await AccountClient.seal(
                plan.keyring, recovery: wrap, after: progress.server.generation, progress.account)
        } catch {
            if isProposed, error.kind == .refused {
                try change(progress.account) { state in
                    if state.proposal == plan.keyring { state.proposal = nil }
                }
            }
            throw error
        }
    }

    /// Waits until the programs that hold the connections of stores have taken the account's newest
    /// key, so that none of them sends anything in clear.
    /// - Returns: Those that have not, such as "notes (4711)".
    package func awaitKey(seconds: Double = 10) async throws -> [String] {
        let state = try load()
        guard let generation = state.keyring?.current else { return [] }
        let end = ContinuousClock.now + .seconds(seconds)
        while true {
            let behind = try storeFiles(in: state.folder).compactMap { file -> String? in
                let holder = LockHolder(of: ProcessLease.path(ofStore: file.path))
                guard let holder, let meta = try? StoreInspection(path: file.path).meta,
                    meta.generation < generation
                else { return nil }
                return holder.description
            }
            if behind.isEmpty || ContinuousClock.now > end { return behind }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    func state(of account: SignedInAccount) throws -> DeviceState {
        let state = try load()
        guard state.signedIn?.account == account.account else { throw SealingError.signedOut }
        return state
    }

    /// - Throws: ``SealingError/signedOut``, ``HomeError``, and what the body throws; then nothing is
    ///   changed.
    func change(
        _ account: SignedInAccount, _ body: (inout DeviceState) throws -> Void
    ) throws {
        try update { state in
            guard state.signedIn?.account == account.account else { throw SealingError.signedOut }
            try body(&state)
        }
    }
}

extension [UInt8] {
    /// Bytes that nobody can guess.
    package static func random(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in generator.next() }
    }
}

extension Bytes32 {
    package static func random() -> Self {
        guard let key = Self([UInt8].random(count)) else {
            preconditionFailure("A key has as many bytes as it has.")
        }
        return key
    }
}

extension TypedSecret {
    package static func random() -> Self {
        guard let secret = Self(.random(bytesCount)) else {
            preconditionFailure("A secret has as many bytes as it has.")
        }
        return secret
    }
}

extension SealingError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .signedOut: "this device is not signed in to the account any more"
        case .unopened(let store, let keys):
            "no key opens \(keys.count == 1 ? "a value" : "\(keys.count) values") of the store "
                + "\(store.string), such as that of \"\(keys.first?.string ?? "")\", and this device has "
                + "nothing in the place, so the store was not sealed: do it on a device that has been in the "
                + "account for longer, or at a terminal, where it asks whether to remove them"
        case .fault(let store, let fault):
            "the server has in the store \(store.string) what a sealed account does not have (\(fault)), so "
                + "nothing was changed there: ask its operator, or restore it from a backup"
        case .noKey(let store): "this device has no key of the store \(store.string)"
        case .restless(let store):
            "the store \(store.string) changed whenever it was read, or is said not to be sealed after "
                + "it was; try again later"
        case .otherProposal:
            "the account's key was changed by another program or device meanwhile, so the recovery key "
                + "that was shown here is of no use; run the command again"
        }
    }
}
