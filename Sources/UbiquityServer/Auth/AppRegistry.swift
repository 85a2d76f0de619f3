// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// The apps that the server accepts, kept in memory because every push needs them.
///
/// State: `apps`, guarded by its lock and reloaded from the storage by ``reload()``, which is
/// called on one thread.
final class AppRegistry: Sendable {
    private let apps: Mutex<AppRule>
    private let storage: any ServerStorage
    private let admission: AppAdmission

    /// Until the first ``reload()``, a server with registered apps accepts none.
    init(storage: any ServerStorage, admission: AppAdmission) {
        self.storage = storage
        self.admission = admission
        apps = Mutex(admission == .open ? .open : .registered([]))
    }

    var rule: AppRule { apps.withLock { $0 } }

    /// - Throws: ``StorageError``.
    func reload() throws(StorageError) {
        guard admission == .registered else { return }
        let registered = Set(try storage.apps().map(\.identifier))
        apps.withLock { $0 = .registered(registered) }
    }
}
