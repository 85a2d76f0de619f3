// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// Applies changes in the storage to the running server.
struct Revocation: Sendable {
    let authenticator: Authenticator
    let hub: PushHub

    func revoked(_ device: DeviceReference) {
        authenticator.invalidate(device)
        hub.end { $0.device == device }
    }

    func erased(_ account: AccountID) {
        authenticator.invalidate(account)
        hub.end { $0.device.account == account }
    }

    /// Ends the streams of apps that are not registered.
    func restricted(to apps: AppRule) {
        hub.end { !apps.admits($0.store.identifier) }
    }
}
