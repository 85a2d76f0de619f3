// SPDX-License-Identifier: Apache-2.0

/// Decides what each caller may do on a server. Nothing else decides that.
package struct AccessRule: Hashable, Sendable {
    package var apps: AppRule
    /// The server's milliseconds since 1970.
    package var now: Int64

    package init(apps: AppRule = .open, now: Int64) {
        self.apps = apps
        self.now = now
    }

    /// - Throws: ``AccessRefusal`` if the caller may not do this.
    package func check(
        _ caller: Caller, _ operation: ServerOperation
    ) throws(AccessRefusal) {
        try check(caller, for: operation.owner)
        guard case .device(let rights) = caller else { return }
        try check(rights, operation)
    }

    /// The part of ``check(_:_:)`` that does not depend on what is asked for. Call it before
    /// parsing the address, so that a caller without rights learns nothing about it.
    /// - Throws: ``AccessRefusal`` if the caller may do nothing of this kind.
    package func check(
        _ caller: Caller, for owner: ServerOperation.Owner
    ) throws(AccessRefusal) {
        guard owner != .anybody else { return }
        switch caller {
        case .nobody: throw .credentialMissing
        case .stranger: throw .credentialInvalid
        case .operator: if owner != .operator { throw .notForOperator }
        case .device(let rights):
            guard !rights.hasExpired(at: now) else { throw .credentialExpired }
            if owner == .operator { throw .onlyForOperator }
        }
    }

    private func check(
        _ rights: DeviceRights, _ operation: ServerOperation
    ) throws(AccessRefusal) {
        switch operation {
        case .readStore(let store), .pushToStore(let store):
            guard rights.reaches(store) else { throw .confined }
            guard apps.admits(store) else { throw .appNotRegistered }
        case .readDevice(let device), .renameDevice(let device), .revokeDevice(let device):
            if rights.isConfined, device != rights.reference.id { throw .hidden }
        case .eraseOwnAccount, .exportOwnAccount, .listDevices:
            if rights.isConfined { throw .confined }
        case .readHealth, .readConfig, .signIn, .listAccounts, .createAccount, .renameAccount,
            .eraseAccount, .exportAccount,
            .makeCode, .listDevicesOfAccount, .renameDeviceOfAccount, .revokeDeviceOfAccount,
            .listApps, .registerApp, .removeApp, .readAudit, .readOwnAccount, .listStores:
            break
        }
    }
}
