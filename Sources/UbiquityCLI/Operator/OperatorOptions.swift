// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore
import UbiquityServer
import UbiquityWire

/// The way of an operator's command to the running server: its data folder, or its address and the
/// operator's credential.
struct OperatorOptions: ParsableArguments {
    @OptionGroup var data: DataOptions

    @Option(
        "The server's address, to send requests to, or for the command to be entered on the "
            + "device.", "url")
    var server: String?

    @Option(
        "The file with the operator's credential, for a server elsewhere or on a database.", "file",
        completion: .file())
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

    /// The address for signing in with a code, by default as the server says it.
    func address(for code: DeviceCode) -> String {
        server ?? code.server ?? "http://127.0.0.1:7717"
    }

    /// A link for a device of the server's own machine, which does not depend on the addresses of its
    /// network; nil if the server is elsewhere, or not one of a local network. Whoever answers there
    /// instead does not have the key.
    func ownLink(for code: DeviceCode) async -> SignInLink? {
        guard server == nil, let pin = code.pin,
            let port = code.server.flatMap({ URLComponents(string: $0)?.port })
        else { return nil }
        guard let address = try? ServerAddress("http://127.0.0.1:\(port)") else { return nil }
        let hasHouse = try? await ServerRequest(.get, ["config"], at: address)
            .answer(WireConfig.self) { $0.hasHouse }
        guard hasHouse ?? false else { return nil }
        return SignInLink(server: "https://127.0.0.1:\(port)", code: code.code, pin: pin)
    }

    var given: [String] {
        data.given
            + UbiquityCLI.given(
                ("--server", server != nil), ("--operator-credential", operatorCredential != nil))
            + connection.given
    }

    /// Calls `body` with the operator's requests, to the server with the credential or to the one that
    /// is running on the data folder.
    /// - Throws: ``Failure``, ``ServerStartError``, and the errors of `body`.
    func withClient<Result>(
        about subject: OperatorSubject = .server, _ body: (OperatorClient) async throws -> Result
    ) async throws -> Result {
        if case .account(let name, let newName) = subject {
            for name in [name, newName].compactMap(\.self) where AccountName(name) == nil {
                throw Failure(.badInput, AccountName.rule)
            }
        }
        do {
            guard let server, let operatorCredential else {
                return try await inFolder(body)
            }
            let security = try connection.security()
            try Failure.checkAddress(server, security)
            let text = String(decoding: try InputFile.readSecret(operatorCredential), as: UTF8.self)
            let credential = text.trimmingCharacters(in: .whitespacesAndNewlines)
            return try await body(
                OperatorClient(server: server, credential: credential, security: security))
        } catch let failure as LinkFailure { throw Failure(failure, about: subject) }
    }

    /// Calls `body` with an account, as its person or as the operator.
    /// - Parameters:
    ///   - name: Nil for the account that this device is signed in to.
    ///   - subject: What an operator's refused request was about.
    func withAccount<Result>(
        _ name: String?, _ home: HomeOptions, about subject: (_ account: String) -> OperatorSubject,
        _ body: (ManagedAccount) async throws -> Result
    ) async throws -> Result {
        guard let name else { return try await body(ManagedAccount(own: home)) }
        return try await withClient(about: subject(name)) { client in
            try await body(ManagedAccount(name, as: client))
        }
    }

    private func inFolder<Result>(
        _ body: (OperatorClient) async throws -> Result
    ) async throws -> Result {
        if let server { try Failure.checkAddress(server) }
        if data.given.isEmpty, DatabaseOptions.fromEnvironment != nil {
            throw Failure(
                .usage,
                "servers on a database are reached with --server URL and --operator-credential FILE; "
                    + "`ubiquity database credential` makes one. For a data folder, give --data.")
        }
        let folder = data.folder()
        let socket: FolderSocket
        do {
            let owner = try FolderOwner.visited(folder)
            socket = try await FolderSocket.ofServer(on: folder, ownedBy: owner) {
                Output.note("Waiting for the server on \(folder).")
            }
        } catch let error as ServerStartError {
            guard error == .noServer(path: folder), folder == DataOptions.installed else {
                throw error
            }
            throw Failure(
                .unavailable,
                "no server is running on \(folder); start it with `sudo systemctl start "
                    + "ubiquity`, or, if its data was moved to PostgreSQL, give --server and "
                    + "--operator-credential")
        }
        do { return try await body(OperatorClient(socket)) } catch let failure as LinkFailure {
            guard [.unreachable, .timedOut].contains(failure.kind) else { throw failure }
            throw Failure(
                .unavailable,
                "the server that is running on \(folder) does not answer (\(failure.detail)); "
                    + "try again, and restart it if that does not help")
        }
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
            "Minutes for which the code is valid. Default: as the server is set, 10 unless changed.",
            valueName: "number"))
    var codeMinutes: Int?

    var seconds: Int64? { codeMinutes.map { Int64($0) * 60 } }

    func validate() throws {
        guard codeMinutes.map({ (1...Self.minutesMax).contains($0) }) ?? true else {
            throw ValidationError("--code-minutes needs a number from 1 to \(Self.minutesMax).")
        }
    }

    private static let minutesMax = Int(PairingRule.codeSecondsMax / 60)
}
