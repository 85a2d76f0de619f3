// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation
internal import Synchronization
internal import UbiquityCore

/// This device's sign-in within one process, with one watcher for all its stores.
///
/// Shared state: `state`, guarded by its mutex, because the sign-in is read on any thread and changes
/// on `queue`. The mutex is held for the first read of the file, so that two first callers read it
/// once, and for copies only after that. `changes` is thread-safe.
final class DeviceAccount: StoreDevice {
    private struct SignIn {
        var known: DeviceState?
        var watcher: FileWatcher?
        /// The last read failed, so nobody has been notified of the change before it.
        var isUnreadable = false
    }

    let home: DeviceHome
    private let state = Mutex(SignIn())
    private let changes = Broadcast<Void>()
    private let queue = DispatchQueue(label: "ubiquity.account")

    private init(_ home: DeviceHome) { self.home = home }

    deinit { state.withLock { $0.watcher?.cancel() } }

    private static let all = Mutex<[String: Weak]>([:])

    private struct Weak { weak var account: DeviceAccount? }

    /// The shared instance for this home.
    static func of(_ home: DeviceHome) -> DeviceAccount {
        all.withLock { all in
            if let account = all[home.path]?.account { return account }
            let account = DeviceAccount(home)
            all[home.path] = Weak(account: account)
            return account
        }
    }

    /// Read once, and again whenever the file has changed.
    /// - Throws: ``HomeError``; ``SystemError`` if the folder cannot be watched.
    func current() throws -> DeviceState {
        let (known, isChanged) = try state.withLock { state -> (DeviceState, Bool) in
            if let known = state.known { return (known, false) }
            if state.watcher == nil {
                // Before the file is read: a change in between is then seen twice rather than
                // never.
                state.watcher = try FileWatcher(
                    folder: home.path, file: DeviceHome.accountFileName, queue: queue
                ) { [weak self] in self?.changed() }
            }
            do throws(HomeError) {
                let known = try home.load()
                state.known = known
                // Runs after the opening that waits for this, and only where such folders are
                // possible.
                if known.lastFolder != nil {
                    queue.async { [home] in try? home.removeAbandonedStores() }
                }
                defer { state.isUnreadable = false }
                return (known, state.isUnreadable)
            } catch {
                state.isUnreadable = true
                throw error
            }
        }
        if isChanged { changes.send(()) }
        return known
    }

    func watch(changed: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        changes.add { if $0 != nil { changed() } }
    }

    func openFile(_ name: String, folder: String) throws -> any LocalStorage {
        try SQLiteStorage(path: home.storePath(for: name, folder: folder))
    }

    func leader(of name: String, folder: String) -> String? {
        (try? home.storePath(for: name, folder: folder)).flatMap { path in
            LockHolder(of: ProcessLease.path(ofStore: path))?.description
        }
    }

    func link(
        to store: StoreIdentifier, of account: SignedInAccount, generation: UInt32
    ) -> any StoreLink {
        let state = try? current()
        let keyring = state?.signedIn?.account == account.account ? state?.keyring : nil
        return HTTPTransport(store, of: account, keyring, generation: generation)
    }

    private func changed() {
        state.withLock { $0.known = nil }
        changes.send(())
    }
}
