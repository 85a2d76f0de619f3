// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation

/// A server in a process of its own, which can be ended and started again at the same address.
struct ServerProcess {
    private let stage: Stage
    private let options: [String]
    private var child: Child?
    /// The server ends when this is closed: with the tests' process, however that ends.
    private var input = Pipe()
    private(set) var port = 0
    let data: String

    init(_ stage: Stage, options: [String] = []) {
        self.stage = stage
        self.options = options
        data = stage.path("server")
    }

    static func started(_ stage: Stage, options: [String] = []) async throws -> ServerProcess {
        var server = ServerProcess(stage, options: options)
        try await server.start()
        return server
    }

    var url: String { "http://127.0.0.1:\(port)" }

    /// The process's; nil: it does not run.
    var number: Int32? { child?.number }

    var operatorCredential: String {
        get throws {
            try String(contentsOfFile: data + "/operator-credential", encoding: .utf8)
                .trimmingCharacters(in: .whitespacesAndNewlines)
        }
    }

    private struct Ready: Decodable { var port: Int }
    private struct Metrics: Decodable { var metrics: String }

    /// Where the metrics are, if the options ask for them.
    var metricsURL: String {
        get throws {
            let line = Data((child?.output ?? "").utf8)
            return try JSONDecoder().decode(Metrics.self, from: line).metrics
        }
    }

    /// Returns when it takes requests.
    mutating func start() async throws {
        input = Pipe()
        let child = try stage.start(
            [
                "serve", "--port", "\(port)", "--data", data, "--json", "--log-level", "error",
                "--end-with-input",
            ] + options, input: input)
        self.child = child
        try await until("the start of the server") {
            if !child.isRunning { throw Trouble("the server did not start: \(child.errors)") }
            return child.output.contains("\n")
        }
        port = try JSONDecoder().decode(Ready.self, from: Data(child.output.utf8)).port
    }

    func signal(_ number: Int32) { child?.signal(number) }

    /// `kill -9`.
    mutating func kill() async throws { try await end(SIGKILL) }

    /// In good order.
    mutating func stop() async throws { try await end(SIGTERM) }

    private mutating func end(_ signal: Int32) async throws {
        child?.signal(signal)
        try await child?.exit()
        child = nil
    }

    private struct Code: Decodable { var code: String }

    /// A code by which a device signs in.
    /// - Parameter isFirst: Whether the account is to be made.
    func newCode(isFirst: Bool, account: String = "ada") async throws -> String {
        let answer = try await stage.succeed(
            "account", isFirst ? "create" : "code", account, "--data", data, "--json")
        return try JSONDecoder().decode(Code.self, from: Data(answer.utf8)).code
    }

    /// Signs a new device in, the first one to a new account.
    /// - Parameter address: By which the device knows the server; nil: its own.
    /// - Returns: Its home.
    func signIn(
        _ name: String, isFirst: Bool = false, account: String = "ada",
        through address: String? = nil
    ) async throws -> String {
        let home = stage.path("home-\(name)")
        let code = try await newCode(isFirst: isFirst, account: account)
        try await stage.succeed(
            "sign-in", "--server", address ?? url, "--code", code, "--device-name", name, "--home",
            home)
        return home
    }
}
