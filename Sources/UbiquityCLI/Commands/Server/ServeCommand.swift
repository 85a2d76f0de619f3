// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Logging
import UbiquityCore
import UbiquityServer

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run a server.",
        discussion: """
            Prints one line when it accepts requests, and runs until Ctrl-C or SIGTERM. The log \
            goes to standard error. Devices are told the limits and the allowance.

            With --lan the server is for a local network: it listens for other machines, with HTTPS \
            by a key and a certificate that it makes and renews itself, in the data folder. It prints \
            the address that they use, and for an empty server a link that makes the first account. \
            Devices that sign in by its links and codes trust its key alone. Browsers warn, until they \
            trust the authority of the house (`ubiquity ca`). This machine may use plain HTTP too.

            With --tls-certificate and --tls-key the server uses HTTPS, otherwise plain HTTP. On \
            addresses other than 127.0.0.1, plain HTTP needs a proxy with TLS in front; give its \
            address with --trusted-proxy, so that limits apply to each of its clients. \
            docs/SETTINGS.md says what happens when a limit is reached.

            With --database the server is one of any number of nodes, which share a PostgreSQL \
            database and keep nothing on their own disks; docs/OPERATING.md says when and how. \
            `ubiquity database` prepares such a database.

            Settings may also be in a file (--config) and in environment variables, such as \
            UBIQUITY_SERVE_LOG_LEVEL for --log-level. An option overrides a variable, and a \
            variable overrides the file. A variable for an option that may be given several times \
            has several values, separated by spaces; one for a flag is true or false.

            JSON, when ready: {"url", "host", "port", "data", "operatorCredential"}, with \
            --metrics-port also "metrics", their address, and with --lan "firstRun", the link that \
            makes the first account, or null. `operatorCredential` is null if the \
            folder has no such file; with --database, it and `data` are null. With --print-config: \
            a list of {"name", "value", "from"}; the address of a database is not shown.
            """)

    @Option(
        help: ArgumentHelp(
            "A file with settings, such as /etc/ubiquity/server.conf.",
            discussion: """
                A line such as `port = 7717` for each option, by its name without dashes. A line \
                that begins with # is a comment. No file is read unless it is given.
                """, valueName: "file"), completion: .file(), transform: notEmpty)
    var config: String?

    @Flag(help: "Print the settings in effect and where each comes from, and start no server.")
    var printConfig = false

    @OptionGroup var data: DataOptions

    @Flag(
        help: "Serve the local network, with HTTPS by a certificate that the server makes itself.")
    var lan = false

    @Option(
        help: ArgumentHelp(
            "The address to listen on. (default: 127.0.0.1; with --lan: 0.0.0.0)",
            valueName: "address"),
        transform: notEmpty)
    var host: String?

    @Option(help: ArgumentHelp("The port to listen on; 0: any free port.", valueName: "number"))
    var port = 7717

    @Option(
        help: ArgumentHelp(
            "Which apps may have stores: all, or only registered ones (`ubiquity app register`).",
            valueName: "which"))
    var apps = AppAdmission.open

    @Option(
        help: ArgumentHelp(
            "The longest key: as Apple's guides say, or as its current SDK does.",
            valueName: "limit"))
    var keyLimit = KeyLimitOption.published

    @Flag(help: "Serve no page for people at /, only the protocol.")
    var noWeb = false

    @Option(
        help: ArgumentHelp(
            "The log level. (default: notice; with --lan: warning)", valueName: "level"))
    var logLevel: LogLevel?

    @Option(
        help: ArgumentHelp("The format of the log: text for people, or JSON.", valueName: "form"))
    var logFormat = LogFormat.text

    @Flag(help: ArgumentHelp("End when standard input ends.", visibility: .hidden))
    var endWithInput = false

    @OptionGroup(title: "Several servers on one database") var node: NodeOptions
    @OptionGroup(title: "Connections") var edge: ServerEdgeOptions
    @OptionGroup(title: "Identity provider") var identity: IdentityOptions
    @OptionGroup(title: "Limits") var limits: LimitOptions
    @OptionGroup var json: JSONOption

    func validate() throws {
        guard (0...65_535).contains(port) else {
            throw ValidationError("--port needs a number from 0 to 65535.")
        }
        try node.check(data)
        guard lan else { return }
        if edge.tlsCertificate != nil {
            throw ValidationError(
                "With --lan, the server makes its certificate itself: omit --tls-certificate and "
                    + "--tls-key.")
        }
        if node.settings(data) != nil {
            throw ValidationError(
                "--lan keeps its keys in a data folder; with --database, give --tls-certificate.")
        }
        if let host, PlainHTTPRule.isLoopback(host) {
            throw ValidationError("--lan is for other machines, which cannot reach \(host).")
        }
    }

    func run() async throws {
        if printConfig { return try printSettings() }
        if endWithInput { Self.watchInput() }
        let settings = try settings()
        let hasFolder = settings.database == nil
        let credential = hasFolder ? settings.operatorCredentialPath : nil
        let ready = ServerReadiness(
            settings: settings, data: hasFolder ? settings.dataFolder : nil, credential: credential,
            isJSON: json.isOn,
            hadCredential: credential.map(FileManager.default.fileExists) ?? false, logger: logger)
        try await runServer(settings, logger: logger) { ready.announce($0) }
    }

    private func printSettings() throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        try ServeConfiguration(arguments, ProcessInfo.processInfo.environment)
            .print(asJSON: json.isOn)
    }

    private var logger: Logger {
        var logger = Logger(label: "ubiquity.server") { label in
            logFormat.handler(lines: StreamLogHandler.standardError(label: label))
        }
        logger.logLevel = (logLevel ?? (lan ? .warning : .notice)).level
        return logger
    }

    /// Ends the server with its input, for programs that start one and must not leave it behind
    /// when killed.
    private static func watchInput() {
        Thread {
            while !FileHandle.standardInput.availableData.isEmpty {}
            kill(getpid(), SIGTERM)
        }.start()
    }

    private func settings() throws -> ServerSettings {
        let database = node.settings(data)
        let folder = database == nil ? try data.entered(isServer: true) : ""
        var settings = ServerSettings(dataFolder: folder)
        settings.database = database
        settings.host = host ?? (lan ? "0.0.0.0" : settings.host)
        settings.isHouse = lan
        settings.port = port
        settings.apps = apps
        settings.servesPage = !noWeb
        settings.limits.key = keyLimit.limit
        limits.apply(to: &settings)
        try LimitOptions.check(settings)
        edge.apply(to: &settings)
        settings.identity = try identity.settings
        return settings
    }
}

extension AppAdmission: ExpressibleByArgument {}

/// The two limits of a key that Apple's store has or had.
enum KeyLimitOption: String, CaseIterable, ExpressibleByArgument {
    case published = "64-bytes"
    case ofSDK = "128-utf16-units"

    var limit: KeyLimit {
        switch self {
        case .published: StoreLimits().key
        case .ofSDK: .utf16Units(128)
        }
    }
}

/// The logger's levels as words of the command line.
enum LogLevel: String, CaseIterable, ExpressibleByArgument {
    case trace, debug, info, notice, warning, error, critical

    var level: Logger.Level { Logger.Level(rawValue: rawValue) ?? .notice }
}

extension LogFormat: ExpressibleByArgument {}
