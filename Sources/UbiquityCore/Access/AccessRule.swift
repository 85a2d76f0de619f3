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
        case .operator: if owner == .device { throw .notForOperator }
        case .device(let rights):
            guard !rights.hasExpired(at: now) else { throw .credentialExpired }
            if owner == .operator { throw .onlyForOperator }
        }
    }

    private func check(
        _ rights: DeviceRights, _ operation: ServerOperation
    ) throws(AccessRefusal) {
        switch operation {
        case .readStore(let store), .readHistory(let store), .pushToStore(let store),
            .readDeliveries(let store):
            guard rights.reaches(store) else { throw .confined }
            guard apps.admits(store) else { throw .appNotRegistered }
        case .readDevice(let device), .renameDevice(let device), .revokeDevice(let device):
            if rights.isConfined, device != rights.reference.id { throw .hidden }
        case .eraseOwnAccount, .exportOwnAccount, .listDevices:
            if rights.isConfined { throw .confined }
        case .makeOwnCode(let stores), .approveSignIn(let stores):
            guard stores?.allSatisfy(rights.reaches) ?? true else { throw .confined }
        case .readHealth, .readPage, .readConfig, .signIn, .requestSignIn,
            .listAccounts, .createAccount, .listStoresOfAccount, .readMetrics,
            .renameAccount, .readLimitsOfAccount, .limitAccount, .eraseAccount, .exportAccount,
            .readSignInRequest, .denySignIn,
            .makeCode, .listDevicesOfAccount, .renameDeviceOfAccount, .revokeDeviceOfAccount,
            .listApps, .registerApp, .removeApp, .readAudit, .readOwnAccount, .listStores:
            break
        }
    }
}

/// The apps for which a server keeps stores.
package enum AppRule: Hashable, Sendable {
    /// All apps.
    case open
    /// Only these apps.
    case registered(Set<StoreIdentifier>)

    package func admits(_ app: StoreIdentifier) -> Bool {
        switch self {
        case .open: true
        case .registered(let apps): apps.contains(app)
        }
    }
}

/// The author of a request, according to its credential.
package enum Caller: Hashable, Sendable {
    /// No credential.
    case nobody
    /// A credential that was never issued, or was revoked.
    case stranger
    case `operator`
    case device(DeviceRights)
}

/// The reason a request is not allowed.
package enum AccessRefusal: Error, Hashable, Sendable, CaseIterable {
    case credentialMissing
    /// Unknown or revoked; the caller is not told which.
    case credentialInvalid
    case credentialExpired
    /// Only the operator may do this.
    case onlyForOperator
    /// Only a device may do this.
    case notForOperator
    /// The credential is confined to other stores of the same account.
    case confined
    /// The server must not reveal whether the thing exists.
    case hidden
    /// The server only accepts registered apps, and this store's app is not one of them.
    case appNotRegistered
}

/// Something that a server is asked to do, with one case for each operation of a route.
///
/// A device's operations always concern its own account: no address names another one.
package enum ServerOperation: Hashable, Sendable {
    // MARK: Anybody's

    case readHealth
    /// The files of the page for people.
    case readPage
    case readConfig
    case signIn
    case requestSignIn

    // MARK: The operator's

    case listAccounts
    case createAccount
    case renameAccount
    case readLimitsOfAccount
    case limitAccount
    case eraseAccount
    case exportAccount
    /// Their sizes, not their content.
    case listStoresOfAccount
    case makeCode
    case listDevicesOfAccount
    case renameDeviceOfAccount
    case revokeDeviceOfAccount
    case listApps
    case registerApp
    case removeApp
    case readAudit
    case readMetrics

    // MARK: A device's

    case readOwnAccount
    case eraseOwnAccount
    case exportOwnAccount
    case listDevices
    case readDevice(DeviceID)
    case renameDevice(DeviceID)
    case revokeDevice(DeviceID)
    case listStores
    /// As one response or as a stream.
    case readStore(StoreIdentifier)
    /// Reads the store's history, as a list or as of a moment.
    case readHistory(StoreIdentifier)
    case pushToStore(StoreIdentifier)
    /// Asks which devices have the store's changes. A confined device only sees itself.
    case readDeliveries(StoreIdentifier)
    /// For a device with these stores; nil for those that the device itself has.
    case makeOwnCode(Set<StoreIdentifier>?)

    // MARK: A device's or the operator's

    case readSignInRequest
    /// Approves a sign-in for these stores; nil as for a code.
    case approveSignIn(Set<StoreIdentifier>?)
    case denySignIn

    /// The kind of caller that an operation is meant for.
    package enum Owner: Hashable, Sendable {
        case anybody
        case `operator`
        case device
        case deviceOrOperator
    }

    package var owner: Owner {
        switch self {
        case .readHealth, .readPage, .readConfig, .signIn, .requestSignIn: .anybody
        case .listAccounts, .createAccount, .renameAccount, .readLimitsOfAccount, .limitAccount,
            .eraseAccount,
            .exportAccount, .listStoresOfAccount, .makeCode,
            .listDevicesOfAccount, .renameDeviceOfAccount, .revokeDeviceOfAccount, .listApps,
            .registerApp, .removeApp, .readAudit, .readMetrics:
            .operator
        case .readOwnAccount, .eraseOwnAccount, .exportOwnAccount, .listDevices, .readDevice,
            .renameDevice,
            .revokeDevice, .listStores, .readStore, .readHistory, .pushToStore, .readDeliveries,
            .makeOwnCode:
            .device
        case .readSignInRequest, .approveSignIn, .denySignIn: .deviceOrOperator
        }
    }
}

/// An account and a device ID, which is unique within its account only.
package struct DeviceReference: Hashable, Sendable {
    package var account: AccountID
    package var id: DeviceID

    package init(account: AccountID, id: DeviceID) {
        self.account = account
        self.id = id
    }
}

/// The rights that a device's credential grants.
package struct DeviceRights: Hashable, Sendable {
    package var reference: DeviceReference
    /// The stores that it may use; nil means all of its account. Of the rest of its account, a
    /// confined device can only reach itself.
    package var stores: Set<StoreIdentifier>?
    /// When the credential expires, in milliseconds since 1970 by the server's clock; nil means
    /// never.
    package var expiresMilliseconds: Int64?
    /// Its account's.
    package var limits: AccountLimits

    package init(
        reference: DeviceReference, stores: Set<StoreIdentifier>? = nil,
        expiresMilliseconds: Int64? = nil, limits: AccountLimits = AccountLimits()
    ) {
        self.reference = reference
        self.stores = stores
        self.expiresMilliseconds = expiresMilliseconds
        self.limits = limits
    }

    package var account: AccountID { reference.account }
    package var isConfined: Bool { stores != nil }

    package func reaches(_ store: StoreIdentifier) -> Bool { stores?.contains(store) ?? true }

    package func hasExpired(at now: Int64) -> Bool {
        expiresMilliseconds.map { $0 <= now } ?? false
    }
}
