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

    /// Looks, before a code is made, whether it could be used: whether the device's folder can be
    /// written to, and nobody is signed in. With `sudo`, as the person who called it.
    func check(device home: HomeOptions) throws {
        let environment = ProcessInfo.processInfo.environment
        var account: SignedInAccount?
        if let caller = SudoCaller(environment) {
            let path = DeviceHome.resolve(
                home.home, environment: environment.merging(["HOME": caller.home]) { $1 })
            let found = caller.acting { Result { try Self.account(in: DeviceHome(path: path)) } }
            guard let found else { throw SudoCaller.refusal }
            account = try found.get()
        } else {
            account = try Self.account(in: home.open())
        }
        guard let account else { return }
        throw Failure(
            .usage,
            "this device is already signed in to \(account.accountName) at \(account.server); run "
                + "`ubiquity sign-out` first, or omit --sign-in")
    }

    /// Makes the folder.
    private static func account(in home: DeviceHome) throws -> SignedInAccount? {
        try home.update { _ in }.signedIn
    }
}
