// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Logging
import Ubiquity
import UbiquityCore
import UbiquityServer

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run a server.",
        discussion: """
            Prints one line when it takes requests, and runs until Ctrl-C or SIGTERM. The log goes to \
            the standard error. The limits and the allowance are made known to the devices.

            A server speaks plain HTTP: on other addresses than 127.0.0.1, put a proxy with TLS in \
            front of it.

            JSON, when ready: {"url", "host", "port", "data", "operatorCredential"}.
            """)

    @OptionGroup var data: DataOptions

    @Option(help: ArgumentHelp("The address to listen on.", valueName: "address"))
    var host = "127.0.0.1"

    @Option(help: ArgumentHelp("The port to listen on; 0: any free one.", valueName: "number"))
    var port = 7717

    @Option(
        help: ArgumentHelp(
            "Which apps may have stores: any, or those of `ubiquity app register`.",
            valueName: "which"))
    var apps = AppAdmission.open

    @Option(help: ArgumentHelp("How much is logged.", valueName: "level"))
    var logLevel = LogLevel.notice

    @Flag(help: ArgumentHelp("End when the standard input does.", visibility: .hidden))
    var endWithInput = false

    @OptionGroup(title: "Limits") var limits: ServerLimitOptions
    @OptionGroup var json: JSONOption

    func validate() throws {
        guard (0...65_535).contains(port) else {
            throw ValidationError("--port needs a number from 0 to 65535.")
        }
    }

    func run() async throws {
        if endWithInput { Self.watchInput() }
        let settings = settings
        let ready = ServerReadiness(
            host: host, data: settings.dataFolder, credential: settings.operatorCredentialPath,
            isJSON: json.isOn,
            isFirstStart: !FileManager.default.fileExists(atPath: settings.operatorCredentialPath))
        var logger = Logger(label: "ubiquity.server") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = logLevel.level
        try await runServer(settings, logger: logger) { port in ready.announce(port: port) }
    }

    /// For a program that starts a server, and must not leave it behind when it is killed.
    private static func watchInput() {
        Thread {
            while !FileHandle.standardInput.availableData.isEmpty {}
            kill(getpid(), SIGTERM)
        }.start()
    }

    private var settings: ServerSettings {
        let folder = URL(fileURLWithPath: (data.folder as NSString).expandingTildeInPath)
        var settings = ServerSettings(dataFolder: folder.standardizedFileURL.path)
        settings.host = host
        settings.port = port
        settings.apps = apps
        limits.apply(to: &settings)
        return settings
    }
}

extension AppAdmission: ExpressibleByArgument {}

/// The logger's levels as words of the command line.
enum LogLevel: String, CaseIterable, ExpressibleByArgument {
    case trace, debug, info, notice, warning, error, critical

    var level: Logger.Level { Logger.Level(rawValue: rawValue) ?? .notice }
}

/// What a server says when it takes requests.
private struct ServerReadiness: Sendable {
    var host: String
    var data: String
    /// The operator's, a file.
    var credential: String
    var isJSON: Bool
    var isFirstStart: Bool

    func announce(port: Int) {
        let host = host.contains(":") ? "[\(host)]" : host
        let url = "http://\(host):\(port)"
        if isJSON {
            return Output.print(
                .object([
                    ("url", .string(url)), ("host", .string(self.host)), ("port", .integer(port)),
                    ("data", .string(data)), ("operatorCredential", .string(credential)),
                ]))
        }
        Output.print("ubiquity serves on \(url) (data in \(data))")
        guard isFirstStart else { return }
        Output.note(
            """
            The operator's credential is in \(credential).
            Make an account with: ubiquity account create NAME --data \(data) --server \(url)
            """)
    }
}
