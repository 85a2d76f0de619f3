// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore

/// What signs a device of this machine in with the code that a command makes.
struct OwnSignInOptions: ParsableArguments {
    @Flag(name: .customLong("sign-in"), help: "Sign a device of this machine in with the code.")
    var isOn = false

    @Option(
        "With --sign-in: the device's name, as the account's owner sees it. Default: the host name.",
        "name")
    var deviceName: String?

    /// - Parameter home: The options that have no effect without ``isOn``.
    func check(_ home: HomeOptions? = nil) throws {
        guard !isOn else { return }
        try refuse(
            given(("--device-name", deviceName != nil)) + (home?.given ?? []), "without --sign-in.")
    }

    /// - Throws: An error for people, before a code is made that could not be used: the device is
    ///   signed in, or its folder cannot be written.
    func requireSignedOut(_ home: HomeOptions) throws {
        guard SudoCaller(ProcessInfo.processInfo.environment) == nil else { return }
        guard let account = try home.open().update({ _ in }).signedIn else { return }
        throw Failure(
            .usage,
            "this device is already signed in to \(account.accountName) at \(account.server); run "
                + "`ubiquity sign-out` first, or omit --sign-in")
    }
}
