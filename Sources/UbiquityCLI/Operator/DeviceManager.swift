// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

/// Manages devices, as a person or as the operator.
enum DeviceManager {
    case person(OwnAccount)
    case `operator`(OperatorClient, account: String)

    /// The oldest first.
    func devices() async throws -> [ServerDevice] {
        switch self {
        case .person(let own): return try await AccountClient.devices(own.account)
        case .operator(let client, let account):
            do { return try await client.devices(accountName: account) } catch {
                throw Failure(error, about: .account(account))
            }
        }
    }

    func rename(_ device: DeviceID, to name: String) async throws -> ServerDevice {
        switch self {
        case .person(let own): try await own.rename(device: device, to: name)
        case .operator(let client, let account):
            try await client.rename(device: device, accountName: account, to: name)
        }
    }

    func revoke(_ device: DeviceID) async throws {
        switch self {
        case .person(let own): try await own.revoke(device: device)
        case .operator(let client, let account):
            try await client.revoke(device: device, accountName: account)
        }
    }

    /// Signs out all devices but this one.
    /// - Returns: The devices that were signed out.
    func revokeOthers() async throws -> [ServerDevice] {
        guard case .person(let own) = self else {
            throw Failure(.usage, "--others is for the account that this device is signed in to")
        }
        return try await AccountClient.signOutOthers(own.account)
    }

    /// The ID of this device; nil for an operator, who has no device here.
    var ownDevice: String? {
        if case .person(let own) = self { own.account.device } else { nil }
    }

    /// Finds a device by its ID, or by its name if that is unique.
    /// - Throws: ``Failure`` if there is none or more than one.
    func find(_ text: String) async throws -> DeviceID {
        if let id = DeviceID(text) { return id }
        let device = try await devices().device(
            text,
            orThrow: Failure(
                .no,
                "there is no device \"\(text)\"; `ubiquity device list` shows the existing ones"))
        guard let id = DeviceID(device.id) else {
            throw Failure(
                .unavailable, "the server gives \"\(text)\" an ID that is none: \(device.id)")
        }
        return id
    }
}

/// The account whose devices a command manages: this device's, or, for the operator, any.
struct DeviceOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "For server operators: the account. Default: the account this device is signed in to.",
            valueName: "name"), completion: Completions.accounts, transform: notEmpty)
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

    /// - Parameter subject: What an operator's refused request was about; nil for a device.
    func withManager<Result>(
        about subject: ((_ account: String) -> OperatorSubject)? = nil,
        _ body: (DeviceManager) async throws -> Result
    ) async throws -> Result {
        guard let account else { return try await body(.person(OwnAccount(home))) }
        let subject = subject?(account) ?? .device(account: account)
        return try await operation.withClient(about: subject) { client in
            try await body(.operator(client, account: account))
        }
    }
}
