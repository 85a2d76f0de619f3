// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization

/// `ubiquity serve` in a process of its own, which can be ended and started again at the same address.
/// It ends with the process that started it, however that ends.
///
/// Shared state, guarded by a mutex: the process of the moment, its input and its port; one task ends
/// and starts it, and others look.
package final class ServerProcess: Sendable {
    private struct State {
        var child: ChildProcess?
        /// The server ends when this is closed.
        var input = Pipe()
        /// Chosen at the first start, if the caller has not.
        var port: Int?
    }

    package let stage: Stage
    private let options: [String]
    package let data: String
    /// The address of the database that it shares with others, instead of using its folder; nil if
    /// it does not.
    private let database: String?
    private let ownEnvironment: [String: String]
    private let state: Mutex<State>

    /// - Parameters:
    ///   - port: Nil for a free one.
    ///   - data: The data folder; nil for one of the stage's.
    ///   - database: The address of a database to use instead of the folder.
    ///   - environment: Variables of the server.
    package init(
        _ stage: Stage, port: Int? = nil, data: String? = nil, database: String? = nil,
        environment: [String: String] = [:], options: [String] = []
    ) {
        (self.stage, self.database, self.options) = (stage, database, options)
        ownEnvironment = environment
        self.data = data ?? stage.path("server")
        state = Mutex(State(port: port))
    }

    package static func started(
        _ stage: Stage, data: String? = nil, database: String? = nil, options: [String] = []
    ) async throws -> ServerProcess {
        let server = ServerProcess(stage, data: data, database: database, options: options)
        try await server.start()
        return server
    }

    package var port: Int { state.withLock(\.port) ?? 0 }
    package var url: String { "http://127.0.0.1:\(port)" }

    /// The errors of the process so far.
    package var errors: String { child?.errors ?? "" }

    /// The process ID; nil if it is not running.
    package var processID: Int32? { child?.processID }

    package var operatorCredential: String {
        get throws {
            try String(contentsOfFile: credentialPath, encoding: .utf8)
                .trimmingCharacters(in: .whitespacesAndNewlines)
        }
    }

    private struct Metrics: Decodable { var metrics: String }

    /// The address of the metrics, if the options ask for them.
    package var metricsURL: String {
        get throws { try Self.decode(Metrics.self, child?.output ?? "").metrics }
    }

    private var child: ChildProcess? { state.withLock(\.child) }

    // MARK: - Its life

    /// Returns when it accepts requests.
    /// - Throws: ``Trouble``, with its errors, if it ends instead.
    package func start() async throws {
        try await prepareDatabase()
        let port = try state.withLock(\.port) ?? FreePort.find()
        let input = Pipe()
        let child = try stage.start(
            [
                "serve", "--port", "\(port)", "--json", "--log-level", "error",
                "--end-with-input",
            ] + (database == nil ? ["--data", data] : []) + options, input: input,
            environment: databaseEnvironment.merging(ownEnvironment) { $1 })
        state.withLock { $0 = State(child: child, input: input, port: port) }
        try await child.wait(for: "the start of the server") {
            if !child.isRunning { throw Trouble("the server did not start: \(child.lastWords)") }
            return child.output.contains("\n")
        }
    }

    package func signal(_ number: Int32) { child?.signal(number) }

    /// - Throws: ``Trouble``, with its errors, if it ended by itself.
    package func mustRun() throws {
        guard let child, !child.isRunning else { return }
        throw Trouble("the server ended by itself with \(child.status): \(child.lastWords)")
    }

    /// `kill -9`.
    package func kill() async throws { try await end(SIGKILL) }

    /// Shuts it down cleanly.
    package func stop() async throws { try await end(SIGTERM) }

    package func end(_ signal: Int32) async throws {
        guard let child else { return }
        child.signal(signal)
        try await child.exit()
        child.forget()
        state.withLock { $0.child = nil }
    }

    private var databaseEnvironment: [String: String] {
        database.map { ["UBIQUITY_DATABASE": $0] } ?? [:]
    }

    /// Makes the operator's credential for the servers of this stage that share a database, before the
    /// first of them starts.
    private func prepareDatabase() async throws {
        guard database != nil, !FileManager.default.fileExists(atPath: credentialPath) else {
            return
        }
        try await stage.succeed(["database", "migrate"], environment: databaseEnvironment)
        let credential = try await stage.succeed(
            ["database", "credential"], environment: databaseEnvironment)
        let isMade = FileManager.default.createFile(
            atPath: credentialPath, contents: Data(credential.utf8),
            attributes: [.posixPermissions: 0o600])
        guard isMade else { throw Trouble.system("no file for the operator's credential") }
    }

    private var credentialPath: String {
        database == nil ? data + "/operator-credential" : stage.path("operator-credential")
    }

    // MARK: - Accounts

    /// The options by which an operator's command reaches this server.
    package var operatorOptions: [String] {
        database == nil
            ? ["--data", data] : ["--server", url, "--operator-credential", credentialPath]
    }

    private struct Code: Decodable { var code: String }

    /// A code by which a device signs in.
    /// - Parameter isFirst: Whether to create the account.
    package func newCode(isFirst: Bool = false, account: String = "ada") async throws -> String {
        let command = ["account", isFirst ? "create" : "code", account, "--json"]
        return try Self.decode(
            Code.self, try await stage.succeed(command + operatorOptions)
        ).code
    }

    /// Signs a new device in, the first one to a new account.
    /// - Parameters:
    ///   - home: Its folder; nil for one of the stage's.
    ///   - address: The address by which the device knows the server; nil for its own.
    /// - Returns: Its home.
    @discardableResult
    package func signIn(
        _ name: String, isFirst: Bool = false, account: String = "ada", home: String? = nil,
        through address: String? = nil
    ) async throws -> String {
        let home = home ?? stage.path("home-\(name)")
        let code = try await newCode(isFirst: isFirst, account: account)
        try await stage.succeed(
            "sign-in", "--server", address ?? url, "--code", code, "--device-name", name, "--home",
            home)
        return home
    }

    private static func decode<Answer: Decodable>(_ type: Answer.Type, _ text: String) throws
        -> Answer
    {
        try JSONDecoder().decode(type, from: Data(text.utf8))
    }
}
