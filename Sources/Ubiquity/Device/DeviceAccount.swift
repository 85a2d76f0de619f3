// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation
internal import Synchronization
internal import UbiquityCore

/// This device's sign-in within one process, with one watcher for all its stores.
///
/// Shared state: `state`, guarded by its mutex, because stores come and go on any thread and the
/// sign-in is read on `queue`. The mutex is held for the first read of the file, so that two first
/// callers read it once, and for copies only after that.
final class DeviceAccount: StoreDevice {
    private struct SignIn {
        var known: DeviceState?
        var watcher: FileWatcher?
        /// Not a dictionary, whose type would have to be instantiated while a store opens.
        var followers: [Follower] = []
        var added = 0
        /// The last read failed, so the followers have not been notified of the change before it.
        var isUnreadable = false

        typealias Follower = (number: Int, changed: @Sendable () -> Void)
    }

    let home: DeviceHome
    private let state = Mutex(SignIn())
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
        let (known, followers) = try state.withLock { state -> (DeviceState, [SignIn.Follower]) in
            if let known = state.known { return (known, []) }
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
                return (known, state.isUnreadable ? state.followers : [])
            } catch {
                state.isUnreadable = true
                throw error
            }
        }
        for follower in followers { follower.changed() }
        return known
    }

    func watch(changed: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        let number = state.withLock { state in
            state.added += 1
            state.followers.append((state.added, changed))
            return state.added
        }
        return { [weak self] in
            self?.state.withLock { $0.followers.removeAll { $0.number == number } }
        }
    }

    func openFile(_ name: String, folder: String) throws -> any LocalStorage {
        try SQLiteStorage(path: home.storePath(for: name, folder: folder))
    }

    func leader(of name: String, folder: String) -> String? {
        LockHolder(of: ProcessLease.path(ofStore: home.storePath(for: name, folder: folder)))?
            .description
    }

    func link(
        to store: StoreIdentifier, of account: SignedInAccount, as device: DeviceID
    ) -> any StoreLink {
        HTTPTransport(
            server: account.server, store: store, credential: account.credential, device: device,
            certificates: account.certificates)
    }

    private func changed() {
        let followers = state.withLock { state in
            state.known = nil
            return state.followers
        }
        for follower in followers { follower.changed() }
    }
}
