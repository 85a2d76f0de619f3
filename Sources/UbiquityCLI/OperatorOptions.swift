// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore
import UbiquityServer

/// The folder in which a server keeps everything.
struct DataOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The server's data folder.",
            discussion: "Default: ubiquity-server in XDG_DATA_HOME, or in ~/.local/share.",
            valueName: "folder"))
    var data: String?

    var folder: String { data ?? Self.standard(ProcessInfo.processInfo.environment) }

    /// Without the tilde that some shells leave.
    static func expanded(_ path: String) -> String {
        URL(fileURLWithPath: (path as NSString).expandingTildeInPath).standardizedFileURL.path
    }

    static func standard(_ environment: [String: String]) -> String {
        func variable(_ name: String) -> String? {
            environment[name].flatMap { $0.isEmpty ? nil : $0 }
        }
        let base = variable("XDG_DATA_HOME") ?? (variable("HOME") ?? "~") + "/.local/share"
        return base + "/ubiquity-server"
    }
}

/// By what right a command makes accounts: the data folder, or the operator's credential.
struct OperatorOptions: ParsableArguments {
    @OptionGroup var data: DataOptions

    @Option(
        help: ArgumentHelp(
            "The server's address: to ask it, or for the line to be typed on the device.",
            valueName: "url"))
    var server: String?

    @Option(
        help: ArgumentHelp(
            "The file with the operator's credential, to ask a server elsewhere.",
            valueName: "file"))
    var operatorCredential: String?

    @OptionGroup(title: "Connection") var connection: ConnectionOptions

    func validate() throws {
        guard operatorCredential != nil else { return }
        if server == nil { throw ValidationError("--operator-credential needs --server URL.") }
        if data.data != nil {
            throw ValidationError("Give --data or --operator-credential, not both.")
        }
    }

    /// What to sign in at; where nothing says, the address a server has by default.
    var serverForDevices: String { server ?? "http://127.0.0.1:7717" }

    func authority() throws -> Authority {
        if let server, operatorCredential == nil { try Failure.checkAddress(server) }
        guard let server, let operatorCredential else {
            return .folder(try Administration(dataFolder: data.folder))
        }
        let security = try connection.security()
        try Failure.checkAddress(server, security)
        let text = String(decoding: try InputFile.readSecret(operatorCredential), as: UTF8.self)
        let credential = text.trimmingCharacters(in: .whitespacesAndNewlines)
        return .credential(server: server, credential, security)
    }

    /// Makes accounts, one way or the other.
    enum Authority {
        case folder(Administration)
        case credential(server: String, String, ConnectionSecurity)

        func createAccount(_ name: String) async throws -> DeviceCode {
            switch self {
            case .folder(let administration):
                DeviceCode(try administration.createAccount(name: name))
            case .credential(let server, let credential, let security):
                DeviceCode(
                    try await AccountClient.createAccount(
                        server: server, operatorCredential: credential, name: name,
                        security: security))
            }
        }

        func newCode(_ name: String) async throws -> DeviceCode {
            switch self {
            case .folder(let administration):
                DeviceCode(try administration.newCode(accountName: name))
            case .credential(let server, let credential, let security):
                DeviceCode(
                    try await AccountClient.newCode(
                        server: server, operatorCredential: credential, accountName: name,
                        security: security))
            }
        }
    }
}

/// A code by which a device signs in once, whoever made it.
struct DeviceCode {
    var code: String
    /// Milliseconds since 1970.
    var expires: Int64

    fileprivate init(_ invitation: Invitation) {
        (code, expires) = (invitation.code, invitation.expires)
    }

    fileprivate init(_ answer: AccountClient.SignInCode) {
        (code, expires) = (answer.code, answer.expiresMilliseconds)
    }
}
