// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore

/// The options to sign a device of this machine in with the code that a command makes.
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

    /// Looks, before a code is made, whether it could be used: whether the address is good, the
    /// device's folder can be written to, and nobody is signed in. With `sudo`, as the person who
    /// called it; otherwise, root keeps out of other users' folders, where its files would be of no
    /// use.
    /// - Parameter operation: The server that is asked for the code; nil for the account's.
    func check(device home: HomeOptions, _ operation: OperatorOptions? = nil) throws {
        if let operation, let server = operation.server {
            try Failure.checkAddress(server, operation.connection.security())
        }
        let environment = ProcessInfo.processInfo.environment
        var account: SignedInAccount?
        if let caller = SudoCaller(environment) {
            let path = DeviceHome.resolve(
                home.home, environment: environment.merging(["HOME": caller.home]) { $1 })
            let found = caller.acting { Result { try Self.account(in: DeviceHome(path: path)) } }
            guard let found else { throw SudoCaller.refusal }
            account = try found.get()
        } else {
            let home = try home.open()
            do { try FolderOwner.check(DataOptions.expanded(home.path)) } catch {
                throw Failure(
                    .noPermission,
                    "permission denied: \(home.path), or a folder on its path, belongs to another "
                        + "user; omit --sign-in, and use the code as that user")
            }
            account = try Self.account(in: home)
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
