// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore

/// A store that a command works on, and the account that this device is signed in to.
struct OpenStore {
    let store: UbiquitousKeyValueStore
    let identifier: String
    let account: SignedInAccount?
    let sync: SyncPolicy
    /// In seconds.
    var timeout: Double { sync.timeout }
    /// Held to keep this process from connecting: only the holder may connect.
    private let lease: ProcessLease?
    private let path: String
    /// The copy that is opened instead of a home that cannot be written; nil if it can.
    private let copy: HomeCopy?

    /// - Throws: ``Failure`` if no store is named, `UbiquityError` if it cannot be opened.
    private init(_ options: StoreOptions, _ sync: SyncPolicy) throws {
        identifier = try options.identifier()
        let home = try options.home.open()
        let state = try home.load()
        account = state.signedIn
        var (configuration, sync) = (options.configuration, sync)
        copy = try HomeCopy(ifReadOnly: home, state, store: identifier)
        if let copy {
            configuration.home = copy.home.path
            sync.isLocal = true
            Output.note("The folder \(home.path) cannot be written; showing what is in it.")
        }
        path = try (copy?.home ?? home).storePath(for: identifier, folder: state.folder)
        do {
            lease = sync.isLocal ? try Self.lease(of: path) : nil
            store = try UbiquitousKeyValueStore(configuration: configuration)
        } catch {
            copy?.remove()
            throw error
        }
        self.sync = sync
    }

    /// - Returns: Nil if another process holds it. That one sends, and this one will not connect
    ///   anyway.
    private static func lease(of store: String) throws -> ProcessLease? {
        if let folder = PrivateFiles.parent(of: store) { try PrivateFiles.makeFolder(folder) }
        let lease = try ProcessLease(path: ProcessLease.path(ofStore: store))
        return lease.tryAcquire() ? lease : nil
    }

    /// An empty store in memory, which is not synced and leaves nothing on this device.
    private init(imagined options: StoreOptions, _ sync: SyncPolicy) throws {
        identifier = try options.identifier()
        (account, lease, path, copy) = (nil, nil, "", nil)
        store = .inMemory(options.configuration)
        self.sync = sync
    }

    /// The handling of a store that neither this device nor the server has. Only a write creates a
    /// file on this device, or the store would be in the list of stores from then on.
    enum Missing {
        case make
        /// Throws a ``Failure``.
        case refuse
        /// Uses an empty store in memory, for a command that says what a write would do.
        case imagine
    }

    /// Opens the store, and closes it in any case, so that other processes take over at once.
    static func with<Result>(
        _ options: StoreOptions, _ sync: SyncPolicy, ifMissing missing: Missing = .make,
        _ body: (OpenStore) async throws -> Result
    ) async throws -> Result {
        let absence = missing == .make ? nil : try await absence(options, sync)
        if let absence, missing == .refuse { throw absence }
        let open =
            try absence == nil ? OpenStore(options, sync) : OpenStore(imagined: options, sync)
        defer {
            open.store.close()
            open.lease?.close()
            open.copy?.remove()
        }
        return try await body(open)
    }

    /// The store's values, with the server's changes if it can be reached.
    /// - Parameter prefix: What their keys begin with; nil for all.
    static func values(
        _ options: StoreOptions, _ sync: SyncPolicy, prefix: String?
    ) async throws -> [Key: PropertyListValue] {
        try await with(options, sync, ifMissing: .refuse) { open in
            await open.refresh()
            return open.store.values.filter { $0.key.string.hasPrefix(prefix ?? "") }
        }
    }

    /// - Returns: What to say of a store that does not exist; nil if it does.
    static func absence(
        _ options: StoreOptions, _ sync: SyncPolicy
    ) async throws -> Failure? {
        let identifier = try options.identifier()
        let home = try options.home.open()
        let state = try home.load()
        let path = try home.storePath(for: identifier, folder: state.folder)
        // What is wrong with a malformed identifier is said when it is opened.
        guard (try? StoreIdentifier(identifier)) != nil, try !home.hasStore(at: path) else {
            return nil
        }
        guard let account = state.signedIn, !sync.isLocal else {
            let sentence = "there is no store \(identifier) on this device"
            let isOut = state.signedIn == nil && !sync.isLocal
            return Failure(.no, sentence + (isOut ? ", which is not signed in" : ""))
        }
        do {
            let stores = try await withTimeout(seconds: sync.timeout) {
                try await AccountClient.stores(account)
            }
            guard !stores.contains(where: { $0.identifier == identifier }) else { return nil }
            return Failure(
                .no, "there is no store \(identifier); `ubiquity store list` has those that exist")
        } catch {
            return Failure(
                Failure(error)?.status ?? .unavailable,
                "there is no store \(identifier) on this device, and the server's could not be "
                    + "fetched: \(Failure.sentence(of: error))")
        }
    }

    /// Fetches changes if the server can be reached, and otherwise prints a line with the reason. Prints
    /// what this device does not take of the server's.
    func refresh() async {
        await fetch()
        let setAside = store.engineStatus.setAside
        if let note = Phrase.setAside(setAside) { Output.note(TerminalText(note)) }
    }

    private func fetch() async {
        guard !sync.isLocal, account != nil else { return }
        do { try await exchange() } catch {
            Output.note(
                "Showing this device's values; the server's could not be fetched: "
                    + "\(Failure.sentence(of: error))")
        }
    }

    /// Fetches changes if the server can be reached. Prints nothing, because later steps report
    /// failures.
    func catchUp() async {
        if !sync.isLocal, account != nil { try? await exchange() }
    }

    /// Stores the changes on this device, and sends them if the server can be reached.
    ///
    /// - Parameter isDryRun: Whether to report only what would happen.
    /// - Throws: `LimitViolation` if they do not fit, and ``Failure`` if the disk refuses them.
    ///   Nothing was stored then.
    func write(_ changes: [Key: Content], isDryRun: Bool = false) async throws -> WriteOutcome {
        if isDryRun {
            try await withinLimits { try store.check(changes) }
            return WriteOutcome(unsent: .dryRun)
        }
        return try await save(changes) { try store.writeInParts(changes) }
    }

    /// Gives keys the values that they had, with the same outcomes.
    func revert(_ contents: [Key: Content]) async throws -> WriteOutcome {
        try await save(contents) { try store.revert(to: contents) }
    }

    private func save(
        _ contents: [Key: Content], _ write: () throws -> Void
    ) async throws -> WriteOutcome {
        guard copy == nil else {
            throw Failure(
                .noPermission, "nothing was changed: the device's folder cannot be written")
        }
        // Before the first download, the account's value would replace what is written here.
        if !store.engineStatus.hasCompletedFirstSync { await catchUp() }
        let keys = Set(contents.keys.map(\.whole.string))
        let earlier = try refusals(of: keys)
        try await withinLimits(write)
        guard store.synchronize() else {
            let reason = store.engineStatus.diskFailure ?? "the disk failed"
            throw Failure(.inputOutput, "the change could not be saved: \(reason)")
        }
        if account == nil { return WriteOutcome(unsent: .notSignedIn) }
        if sync.isLocal { return WriteOutcome(unsent: .local) }
        // A value that waits already may be written again.
        let own = store.waitingWrites.filter { keys.contains($0.key.whole.string) }
        let failure = await failureOfExchange()
        // Its answer may have come before the round trip was asked for.
        if let reason = try refusals(of: keys).first(where: { earlier[$0.key] == nil })?.value {
            return WriteOutcome(unsent: .refused(reason, isRolledBack: true))
        }
        guard let failure else { return WriteOutcome(unsent: nil) }
        let (reason, error) = (Failure.sentence(of: failure), failure as? UbiquityError)
        if let error, !keys.isDisjoint(with: error.refusedKeys) {
            return WriteOutcome(unsent: .refused(reason, isRolledBack: true))
        }
        // The server may have these, and not what waited before them.
        if store.hasConfirmed(own) { return WriteOutcome(unsent: nil) }
        return WriteOutcome(
            unsent: error?.code == .refused
                ? .refused(reason, isRolledBack: false) : .failed(reason))
    }

    private func failureOfExchange() async -> (any Error)? {
        let writes = store.unconfirmedWrites
        do { try await exchange() } catch { return error }
        // The server has them. The next command should find here that it does.
        try? await withTimeout(seconds: timeout) { [store] in
            try await Self.agreement(on: writes, store)
        }
        return nil
    }

    /// The reasons of the refused writes of keys that this device keeps, by their times and keys.
    private func refusals(of keys: Set<String>) throws -> [String: String] {
        let writes = try store.refusedWrites().filter { keys.contains($0.key) }
        return Dictionary(
            writes.map { ("\($0.date.timeIntervalSince1970) \($0.key)", $0.reason) }
        ) { first, _ in first }
    }

    /// Does it again if it was refused by limits that the server may have raised since.
    private func withinLimits(_ write: () throws -> Void) async throws {
        let limits = store.engineStatus.limits
        do { try write() } catch {
            await catchUp()
            guard store.engineStatus.limits != limits else { throw error }
            try write()
        }
    }

    /// No process of this device talks to the server, because this one was told not to.
    var isHeldOffline: Bool { lease != nil && account != nil }

    /// The other process that holds the connection; nil if there is none.
    var leader: String? {
        if store.engineStatus.isLeading || isHeldOffline { return nil }
        return LockHolder(of: ProcessLease.path(ofStore: path))?.description
    }

    /// The process that holds the connection and does not respond, or is stopped.
    var heldUpBy: String? {
        if store.engineStatus.isLeading { return nil }
        let holder = LockHolder(of: ProcessLease.path(ofStore: path))
        return store.status.heldUpBy ?? holder.flatMap { $0.isStopped ? $0.description : nil }
    }

    /// Makes one round trip.
    func exchange() async throws { try await reachServer { try await $0.synchronizeNow() } }

    /// Makes one round trip, and waits until device and server agree on the writes that were
    /// waiting before: an answer is not agreement yet. Later writes are not waited for, not even of
    /// the same keys.
    func awaitConfirmation() async throws {
        try await reachServer { store in
            let writes = store.unconfirmedWrites
            try await store.synchronizeNow()
            try await Self.agreement(on: writes, store)
        }
    }

    /// Waits until device and server agree on the writes, and saves that.
    private static func agreement(
        on writes: [Key: PendingWrite], _ store: UbiquitousKeyValueStore
    ) async throws {
        func isOpen(_ key: Key, _ write: PendingWrite) -> Bool {
            writes[key]?.transaction == write.transaction
        }
        while store.unconfirmedWrites.contains(where: isOpen) {
            try await Task.sleep(for: .milliseconds(10))
        }
        _ = store.synchronize()
    }

    /// Calls `body` within the timeout, and shows progress.
    /// - Throws: ``Failure`` if this device is not signed in, ``UbiquityError/Code/heldUp`` with the
    ///   process that holds it up, and the errors of `body`.
    private func reachServer(
        _ body: @escaping @Sendable (UbiquitousKeyValueStore) async throws -> Void
    ) async throws {
        guard account != nil else { throw Failure.notSignedIn }
        do {
            try await showingProgress {
                try await withTimeout(seconds: timeout, isSending: true) { [store] in
                    try await body(store)
                }
            }
        } catch {
            guard let heldUpBy else { throw error }
            throw UbiquityError(
                .heldUp,
                "\(heldUpBy) holds this device's connection and does not respond; let it continue "
                    + "(kill -CONT), or end it")
        }
    }

    /// Shows how much was sent for the keys that wait now. How much there is to fetch is not known
    /// before it is here.
    private func showingProgress(_ body: () async throws -> Void) async throws {
        try await Progress.showing { note in
            let all = store.engineStatus.pendingKeys.count
            let (what, start) = ("Sending \(Phrase.keys(all))", HTTPTransport.bytesSent)
            note(all > 0 ? ProgressStep(what, 0) : ProgressStep("Fetching"))
            guard all > 0, Output.isErrorTerminal else { return try await body() }
            let watch = Task {
                while (try? await Task.sleep(for: .milliseconds(100))) != nil {
                    note(ProgressStep(what, HTTPTransport.bytesSent - start))
                }
            }
            defer { watch.cancel() }
            try await body()
        }
    }
}

/// The outcome of a write that this device has saved.
struct WriteOutcome {
    enum Unsent {
        case notSignedIn
        case local
        case dryRun
        case failed(String)
        /// Trying again does not help. A write that is rolled back is not on this device either.
        case refused(String, isRolledBack: Bool)
    }

    /// Nil if the server has it.
    var unsent: Unsent?

    /// A message for people; nil if there is none.
    var note: String? {
        switch unsent {
        case nil, .local, .dryRun: nil
        case .notSignedIn: "Not signed in. Saved on this device."
        case .failed(let reason): "Saved on this device, but not sent yet: \(reason)"
        case .refused(let reason, isRolledBack: false): "Saved on this device only: \(reason)"
        case .refused(let reason, isRolledBack: true):
            "Rolled back, because the server refuses it: \(reason)"
        }
    }

    /// Prints the note, and the document if JSON is wanted.
    /// - Parameter fields: The command's own, before those that all writing commands have in common.
    /// - Returns: Whether sentences are wanted instead of JSON.
    /// - Throws: As ``check()``.
    @discardableResult
    func report(
        _ json: some JSONForm, _ fields: KeyValuePairs<String, JSON>
    ) throws(ExitCode) -> Bool {
        if let note { Output.note(TerminalText(note)) }
        if json.isOn { json.print(.object(fields.map { ($0.key, $0.value) } + self.fields)) }
        try check()
        return !json.isOn
    }

    /// Call where a command has said what it did, or before it says that it did it.
    /// - Throws: An exit status if the server refused the write, so that nothing has changed.
    func check() throws(ExitCode) {
        if case .refused(_, isRolledBack: true) = unsent {
            throw ExitCode(Failure.Status.noPermission.rawValue)
        }
    }

    /// The JSON fields that all writing commands have in common.
    var fields: [(String, JSON)] {
        let reason: String? =
            switch unsent {
            case nil: nil
            case .local: "--local"
            case .dryRun: "--dry-run"
            case .notSignedIn: "not signed in"
            case .failed(let reason), .refused(let reason, _): reason
            }
        return [("sent", .boolean(unsent == nil)), ("notSentBecause", .optional(reason))]
    }
}

/// - Parameters:
///   - start: When the time begins.
///   - isSending: Whether the time begins anew with each byte that is sent: a slow line needs as long as it
///     needs.
/// - Throws: The body's error, or ``UbiquityError/Code/unreachable`` when the time is up; the body
///   is cancelled then.
func withTimeout<Result: Sendable>(
    seconds: Double, since start: ContinuousClock.Instant = .now, isSending: Bool = false,
    _ body: @escaping @Sendable () async throws -> Result
) async throws -> Result {
    try await withThrowingTaskGroup(of: Result.self) { group in
        group.addTask { try await body() }
        group.addTask {
            let before = HTTPTransport.bytesSent
            var (sent, end) = (before, start + .seconds(seconds))
            while isSending, ContinuousClock.now < end {
                try await Task.sleep(for: .seconds(min(seconds / 10, 0.25)))
                let now = HTTPTransport.bytesSent
                if now != sent { (sent, end) = (now, .now + .seconds(seconds)) }
            }
            try await Task.sleep(until: end, clock: .continuous)
            let slow =
                sent > before
                ? ", after \(sent - before) bytes were sent; a slow line may need a longer --timeout"
                : ""
            throw UbiquityError(
                .unreachable, "the server did not answer within \(seconds.formatted()) s" + slow)
        }
        defer { group.cancelAll() }
        guard let result = try await group.next() else { throw CancellationError() }
        return result
    }
}
