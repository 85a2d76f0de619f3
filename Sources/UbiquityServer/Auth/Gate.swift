// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// Authorises requests. All routes use it; ``AccessRule`` decides.
struct Gate: Sendable {
    let authenticator: Authenticator
    let apps: AppRegistry
    let clock: ServerClock
    /// Whether every request is the operator's, because only the data folder's owner can send one.
    var isInFolder = false

    /// An operator whose request was let through, for the audit log.
    var operatorActor: AuditActor { isInFolder ? .operatorLocally : .operatorByCredential }

    private var rule: AccessRule { AccessRule(apps: apps.rule, now: clock.now()) }

    /// Checks whether the caller may do anything of this kind. Call this before parsing the address.
    /// - Throws: ``AccessRefusal``.
    func check(_ caller: Caller, for owner: ServerOperation.Owner) throws(AccessRefusal) {
        try rule.check(caller, for: owner)
    }

    /// - Throws: ``AccessRefusal``.
    func check(_ caller: Caller, _ operation: ServerOperation) throws(AccessRefusal) {
        try rule.check(caller, operation)
    }

    /// Checks whether the same credential still permits this operation.
    /// - Throws: ``AccessRefusal``, ``StorageError``, ``Busy``.
    func checkAgain(_ credential: String?, _ operation: ServerOperation) async throws {
        try check(isInFolder ? .operator : try await authenticator.caller(credential), operation)
    }
}

/// The apps that the server accepts, kept in memory because every push needs them.
///
/// State: `apps`, guarded by its lock and reloaded from the storage by ``reload()``, which is
/// called on one thread.
final class AppRegistry: Sendable {
    private let apps: Mutex<AppRule>
    private let storage: any AccountStorage
    private let admission: AppAdmission

    /// Until the first ``reload()``, a server with registered apps accepts none.
    init(storage: any AccountStorage, admission: AppAdmission) {
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

/// Applies changes in the storage to the running server.
struct Revocation: Sendable {
    let authenticator: Authenticator
    let hub: PushHub

    /// - Parameter devices: All devices that were signed out or revoked.
    func revoked(_ devices: Set<DeviceReference>) {
        for account in Set(devices.map(\.account)) { authenticator.invalidate(account) }
        hub.end { devices.contains($0.device) }
    }

    /// Call when an account was erased, or its limits changed: its devices get the new ones when they
    /// reconnect.
    func accountChanged(_ account: AccountID) {
        authenticator.invalidate(account)
        hub.end { $0.device.account == account }
    }

    /// Ends the streams of apps that are not registered.
    func restricted(to apps: AppRule) {
        hub.refuse(.appNotRegistered) { !apps.admits($0.store.identifier) }
    }
}
