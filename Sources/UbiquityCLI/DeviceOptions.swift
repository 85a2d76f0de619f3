// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

/// The account whose devices a command manages: this device's, or, for the operator, any.
struct DeviceOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "For who runs the server: the account. Default: the one this device is signed in to.",
            valueName: "name"), transform: notEmpty)
    var account: String?

    @OptionGroup(title: "For who runs the server") var operation: OperatorOptions
    @OptionGroup var home: HomeOptions

    func validate() throws {
        guard account != nil else {
            return try refuse(
                operation.given,
                "without --account NAME: the command would be about the account that this device is "
                    + "signed in to. Give the account's name.")
        }
        try refuse(home.given, "with --account, only by this device's own sign-in.")
        try operation.requireCredentialForServer()
    }

    func manager() throws -> DeviceManager {
        guard let account else { return .person(try OwnAccount(home)) }
        return .operator(try operation.authority(), account: account)
    }
}
