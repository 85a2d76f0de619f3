// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity

/// Where this device keeps its sign-in and its values.
struct HomeOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The folder of this device's sign-in and values.",
            discussion: "Default: UBIQUITY_HOME, else the system's place for a program's data.",
            valueName: "folder"))
    var home: String?

    func open() throws -> DeviceHome { try DeviceHome(path: home) }
}

/// Which store.
struct StoreOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The store, such as TEAMID.com.example.app.",
            discussion: "Default: UBIQUITY_KVSTORE_IDENTIFIER.", valueName: "identifier"))
    var store: String?

    @OptionGroup var home: HomeOptions

    var configuration: UbiquityConfiguration {
        var configuration = UbiquityConfiguration(identifier: store, home: home.home)
        configuration.logger = .program
        return configuration
    }

    /// - Throws: ``Failure`` if nothing names a store.
    func identifier() throws -> String {
        guard let identifier = try configuration.resolvedIdentifier() else {
            throw Failure(
                .usage,
                "no store is named: give --store IDENTIFIER, or set "
                    + "\(UbiquityConfiguration.identifierVariable) in the environment")
        }
        return identifier
    }
}

/// How a command deals with the server.
struct SyncOptions: ParsableArguments {
    @Flag(help: "Do not talk to the server.")
    var local = false

    @Option(
        help: ArgumentHelp("How long to wait for the server.", valueName: "seconds"))
    var timeout = 5.0

    func validate() throws {
        guard timeout > 0, timeout.isFinite else {
            throw ValidationError("--timeout needs a number of seconds above 0.")
        }
    }
}

/// The same without its spelling on the command line.
struct SyncPolicy {
    var isLocal = false
    var timeout: Double
}

extension SyncOptions {
    var policy: SyncPolicy { SyncPolicy(isLocal: local, timeout: timeout) }
}

struct JSONOption: ParsableArguments {
    @Flag(name: .customLong("json"), help: "Print JSON, one document on one line.")
    var isOn = false
}
