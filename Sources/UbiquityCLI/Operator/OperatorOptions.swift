// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore
import UbiquityServer

/// The authority of an operator's command: the data folder, or the operator's credential.
struct OperatorOptions: ParsableArguments {
    @OptionGroup var data: DataOptions

    @Option(
        help: ArgumentHelp(
            "The server's address, to send requests to, or for the command to be entered on the "
                + "device.",
            valueName: "url"), transform: notEmpty)
    var server: String?

    @Option(
        help: ArgumentHelp(
            "The file with the operator's credential, for a server elsewhere.",
            valueName: "file"), transform: notEmpty)
    var operatorCredential: String?

    @OptionGroup(title: "Connection") var connection: ConnectionOptions

    func validate() throws {
        guard operatorCredential != nil else {
            return try refuse(connection.given, "without --operator-credential.")
        }
        if server == nil { throw ValidationError("--operator-credential needs --server URL.") }
        if data.data != nil {
            throw ValidationError("Give --data or --operator-credential, not both.")
        }
        try connection.check(server)
    }

    /// For commands that print nothing for a device, where the address only serves to ask the
    /// server.
    func requireCredentialForServer() throws {
        guard operatorCredential == nil else { return }
        try refuse(
            UbiquityCLI.given(("--server", server != nil)),
            "without --operator-credential FILE: the command would use this machine's data folder. "
                + "Give the credential, or omit --server.")
    }

    /// For commands that use any account, or without its name that of this device.
    /// - Parameter own: The given options that are only for this device's account.
    func check(accountName: String?, to action: String, own: [String]) throws {
        guard accountName != nil else {
            return try refuse(
                given,
                "without the account's NAME: the command would \(action) the account that this "
                    + "device is signed in to. Give a NAME.")
        }
        try refuse(
            own, "with a NAME; it is only for the account that this device is signed in to.")
        try requireCredentialForServer()
    }

    /// The address for signing in, by default a server's default address.
    var serverForDevices: String { server ?? "http://127.0.0.1:7717" }

    var given: [String] {
        data.given
            + UbiquityCLI.given(
                ("--server", server != nil), ("--operator-credential", operatorCredential != nil))
            + connection.given
    }

    /// - Parameter codeMinutes: How long codes made in the data folder are valid.
    func authority(codeMinutes: Int? = nil) throws -> OperatorAuthority {
        if let server, operatorCredential == nil { try Failure.checkAddress(server) }
        guard let server, let operatorCredential else {
            return .folder(
                try Administration(
                    dataFolder: data.enter(), codeSeconds: codeMinutes.map { Int64($0) * 60 }))
        }
        let security = try connection.security()
        try Failure.checkAddress(server, security)
        let text = String(decoding: try InputFile.readSecret(operatorCredential), as: UTF8.self)
        let credential = text.trimmingCharacters(in: .whitespacesAndNewlines)
        return .credential(
            try OperatorClient(server: server, credential: credential, security: security))
    }
}

/// An operator's command that only uses ``OperatorOptions/server`` as the server to ask.
protocol OperatorCommand: AsyncParsableCommand {
    var operation: OperatorOptions { get }
}

extension OperatorCommand {
    func validate() throws { try operation.requireCredentialForServer() }
}

/// The validity of a new code.
struct CodeOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Minutes for which the code is valid. (default: 10)",
            discussion: "With --operator-credential, the server's own setting applies.",
            valueName: "number"))
    var codeMinutes: Int?

    func validate() throws {
        guard codeMinutes.map({ (1...Self.minutesMax).contains($0) }) ?? true else {
            throw ValidationError("--code-minutes needs a number from 1 to \(Self.minutesMax).")
        }
    }

    private static let minutesMax = 1_000_000

    /// - Throws: `ValidationError` if the option would have no effect.
    func check(_ operation: OperatorOptions) throws {
        guard operation.operatorCredential != nil else { return }
        try refuse(
            given(("--code-minutes", codeMinutes != nil)),
            "with --operator-credential: the server's own setting applies.")
    }
}
