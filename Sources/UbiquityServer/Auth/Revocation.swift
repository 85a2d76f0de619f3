// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// Makes the running server follow what the storage has just been told.
struct Revocation: Sendable {
    let authenticator: Authenticator
    let hub: PushHub

    func revoked(_ device: DeviceName) {
        authenticator.forget(device)
        hub.end { $0.device == device }
    }

    func erased(_ account: AccountID) {
        authenticator.forget(account)
        hub.end { $0.device.account == account }
    }

    /// The server takes no more apps than these.
    func restricted(to apps: AppRule) {
        hub.end { !apps.admits($0.store.identifier) }
    }
}
