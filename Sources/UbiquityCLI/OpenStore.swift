// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityCore

/// A store that a command works on, and the account that this device is signed in to.
struct OpenStore {
    let store: UbiquitousKeyValueStore
    let identifier: String
    let account: SignedInAccount?
    private let sync: SyncPolicy
    /// Held so that this process does not connect: whoever holds it is the one that may.
    private let lease: ProcessLease?
    private let path: String

    /// - Throws: ``Failure`` if no store is named, `UbiquityError` if it cannot be opened.
    init(_ options: StoreOptions, _ sync: SyncPolicy) throws {
        identifier = try options.identifier()
        let home = try options.home.open()
        let state = try home.load()
        account = state.signedIn
        path = home.storePath(for: identifier, folder: state.folder)
        lease = sync.isLocal ? try Self.lease(of: path) : nil
        store = try UbiquitousKeyValueStore(configuration: options.configuration)
        self.sync = sync
    }

    /// - Returns: Nil if another process has it: that one sends, and this one need not be kept from it.
    private static func lease(of store: String) throws -> ProcessLease? {
        if let folder = PrivateFiles.parent(of: store) { try PrivateFiles.makeFolder(folder) }
        let lease = try ProcessLease(path: ProcessLease.path(ofStore: store))
        return lease.tryAcquire() ? lease : nil
    }

    /// Opens the store, and closes it whatever happens, so that other processes take over at once.
    static func with<Result>(
        _ options: StoreOptions, _ sync: SyncPolicy,
        _ body: (OpenStore) async throws -> Result
    ) async throws -> Result {
        let open = try OpenStore(options, sync)
        defer {
            open.store.close()
            open.lease?.close()
        }
        return try await body(open)
    }

    /// Fetches what is new, if the server can be reached; else says in one line why not.
    func refresh() async {
        guard !sync.isLocal, account != nil else { return }
        do { try await exchange() } catch {
            Output.note("Showing what this device has; not fetched: \(Failure.sentence(of: error))")
        }
    }

    /// Fetches what is new, if the server can be reached, without a word: whatever follows says it.
    func catchUp() async {
        if !sync.isLocal, account != nil { try? await exchange() }
    }

    /// Stores the changes on this device, and sends them if the server can be reached.
    ///
    /// - Parameter isDryRun: Whether to say only what would become of them.
    /// - Throws: `LimitViolation` if they do not fit, and ``Failure`` if the disk refuses them; then
    ///   nothing was stored.
    func write(_ changes: [Key: Content], isDryRun: Bool = false) async throws -> WriteOutcome {
        if isDryRun {
            try store.check(changes)
            return WriteOutcome(unsent: .dryRun)
        }
        try store.write(changes)
        guard store.synchronize() else {
            let reason = store.engineStatus.diskFailure ?? "the disk refused"
            throw Failure(.inputOutput, "the change could not be saved: \(reason)")
        }
        if account == nil { return WriteOutcome(unsent: .notSignedIn) }
        if sync.isLocal { return WriteOutcome(unsent: .local) }
        do { try await exchange() } catch {
            return WriteOutcome(unsent: .failed(Failure.sentence(of: error)))
        }
        return WriteOutcome(unsent: nil)
    }

    /// No process of this device talks to the server, for this one was told not to.
    var isHeldOffline: Bool { lease != nil && account != nil }

    /// The process that holds the connection and does not answer; one that is stopped will not.
    var heldUpBy: String? {
        if store.engineStatus.isLeading { return nil }
        let holder = LockHolder(of: ProcessLease.path(ofStore: path))
        return store.status.heldUpBy ?? holder.flatMap { $0.isStopped ? $0.description : nil }
    }

    /// One round trip, within the timeout.
    func exchange() async throws {
        do {
            try await withTimeout(seconds: sync.timeout) { [store] in
                try await store.synchronizeNow()
            }
        } catch {
            guard let heldUpBy else { throw error }
            throw UbiquityError(
                .heldUp,
                "\(heldUpBy) holds this device's connection and does not answer; let it go on "
                    + "(kill -CONT), or end it")
        }
    }

    /// One round trip, and until device and server agree on what waited before: an answer is not
    /// agreement yet. Later writes are not waited for, of the same keys neither.
    func agree() async throws {
        try await withTimeout(seconds: sync.timeout) { [store] in
            let writes = store.waitingWrites
            try await store.synchronizeNow()
            for await _ in store.statuses where store.agrees(on: writes) { break }
        }
    }
}

/// What became of a write that this device has saved.
struct WriteOutcome {
    enum Unsent {
        case notSignedIn
        case local
        case dryRun
        case failed(String)
    }

    /// Nil: the server has it.
    var unsent: Unsent?

    /// What a person should know; nil if there is nothing.
    var note: String? {
        switch unsent {
        case nil, .local, .dryRun: nil
        case .notSignedIn: "Not signed in: kept on this device."
        case .failed(let reason): "Saved on this device; not sent yet: \(reason)"
        }
    }

    /// The fields that every command that writes has in its JSON.
    var fields: [(String, JSON)] {
        let reason: String? =
            switch unsent {
            case nil: nil
            case .local: "--local"
            case .dryRun: "--dry-run"
            case .notSignedIn: "not signed in"
            case .failed(let reason): reason
            }
        return [("sent", .boolean(unsent == nil)), ("notSentBecause", .optional(reason))]
    }
}
