// SPDX-License-Identifier: Apache-2.0

/// Something that a server is asked to do, with one case for each operation of a route.
///
/// A device's operations always concern its own account: no address names another one.
package enum ServerOperation: Hashable, Sendable {
    // MARK: Anybody's

    case readHealth
    case readConfig
    case signIn

    // MARK: The operator's

    case listAccounts
    case createAccount
    case renameAccount
    case eraseAccount
    case exportAccount
    case makeCode
    case listDevicesOfAccount
    case renameDeviceOfAccount
    case revokeDeviceOfAccount
    case listApps
    case registerApp
    case removeApp
    case readAudit

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
    case pushToStore(StoreIdentifier)

    /// The kind of caller that an operation is meant for.
    package enum Owner: Hashable, Sendable {
        case anybody
        case `operator`
        case device
    }

    package var owner: Owner {
        switch self {
        case .readHealth, .readConfig, .signIn: .anybody
        case .listAccounts, .createAccount, .renameAccount, .eraseAccount,
            .exportAccount, .makeCode,
            .listDevicesOfAccount, .renameDeviceOfAccount, .revokeDeviceOfAccount, .listApps,
            .registerApp, .removeApp, .readAudit:
            .operator
        case .readOwnAccount, .eraseOwnAccount, .exportOwnAccount, .listDevices, .readDevice,
            .renameDevice,
            .revokeDevice, .listStores, .readStore, .pushToStore:
            .device
        }
    }
}
