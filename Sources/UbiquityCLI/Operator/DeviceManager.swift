// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

/// Manages devices, as a person or as the operator.
enum DeviceManager {
    case person(OwnAccount)
    case `operator`(OperatorAuthority, account: String)

    /// The oldest first.
    func devices() async throws -> [ServerDevice] {
        switch self {
        case .person(let own): try await AccountClient.devices(own.account)
        case .operator(let authority, let account):
            try await authority.devices(of: account)
        }
    }

    func rename(_ device: DeviceID, to name: String) async throws -> ServerDevice {
        switch self {
        case .person(let own): try await own.rename(device: device, to: name)
        case .operator(let authority, let account):
            try await authority.rename(device: device, of: account, to: name)
        }
    }

    func revoke(_ device: DeviceID) async throws {
        switch self {
        case .person(let own): try await own.revoke(device: device)
        case .operator(let authority, let account):
            try await authority.revoke(device: device, of: account)
        }
    }

    /// The ID of this device; nil for an operator, who has no device here.
    var ownDevice: String? {
        if case .person(let own) = self { own.account.device } else { nil }
    }

    /// Finds a device by its ID, or by its name if that is unique.
    /// - Throws: ``Failure`` if there is none or more than one.
    func find(_ text: String) async throws -> DeviceID {
        if let id = DeviceID(text) { return id }
        let named = try await devices().filter { $0.name == text }
        switch named.count {
        case 0:
            throw Failure(
                .no,
                "there is no device \"\(text)\"; `ubiquity device list` shows the existing ones")
        case 1: return DeviceID(named[0].id)!
        default:
            let ids = named.map(\.id).joined(separator: ", ")
            throw Failure(
                .badInput, "several devices are called \"\(text)\"; give the ID instead: \(ids)")
        }
    }
}

/// The account whose devices a command manages: this device's, or, for the operator, any.
struct DeviceOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "For server operators: the account. Default: the account this device is signed in to.",
            valueName: "name"), transform: notEmpty)
    var account: String?

    @OptionGroup(title: "For server operators") var operation: OperatorOptions
    @OptionGroup var home: HomeOptions

    func validate() throws {
        guard account != nil else {
            return try refuse(
                operation.given,
                "without --account NAME: the command would apply to the account that this device "
                    + "is signed in to. Give the account's name.")
        }
        try refuse(home.given, "with --account; it is only for this device's own sign-in.")
        try operation.requireCredentialForServer()
    }

    func manager() throws -> DeviceManager {
        guard let account else { return .person(try OwnAccount(home)) }
        return .operator(try operation.authority(), account: account)
    }
}
