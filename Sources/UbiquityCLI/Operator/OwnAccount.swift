// SPDX-License-Identifier: Apache-2.0

import Ubiquity
import UbiquityCore

/// A person's operations on their own account and devices, with this device's sign-in.
struct OwnAccount {
    let home: DeviceHome
    let account: SignedInAccount

    /// - Throws: ``Failure`` if this device is not signed in.
    init(_ options: HomeOptions) throws {
        home = try options.open()
        guard let account = try home.load().signedIn else {
            throw Failure(
                .noPermission,
                "this device is not signed in; run `ubiquity sign-in` first, or, if you run the "
                    + "server, give the account's name")
        }
        self.account = account
    }

    /// A new name of this device is stored here too.
    func rename(device: DeviceID, to name: String) async throws -> ServerDevice {
        try await home.rename(device: device.description, to: name, account)
    }

    func revoke(device: DeviceID) async throws {
        guard device.description != account.device else {
            throw Failure(
                .usage, "this is the device that you are using; `ubiquity sign-out` signs it out")
        }
        try await AccountClient.revoke(device: device.description, account)
    }
}
