// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Ubiquity
import UbiquityWire

/// The server, which is killed and started again at the same address, over and over.
///
/// Shared state: the process of the moment, guarded by a mutex: one task kills and starts it, and
/// others look.
final class TortureServer: Sendable {
    private let stage: Stage
    let port: Int
    let data: String
    private let child = Mutex<ChildProcess?>(nil)

    init(_ stage: Stage, port: Int, data: String) {
        (self.stage, self.port, self.data) = (stage, port, data)
    }

    /// Not through a proxy.
    var url: String { "http://127.0.0.1:\(port)" }

    /// Returns when it takes requests.
    /// - Throws: ``Trouble``, with what it said, if it ends instead.
    func start() async throws {
        let new = try stage.start(
            .ubiquity,
            [
                "serve", "--port", "\(port)", "--data", data, "--json", "--log-level", "error",
                "--end-with-input",
            ])
        child.withLock { $0 = new }
        // It says one line when it is ready; a process that ends closes its output.
        let line = await Self.output(of: new)
        guard !line.isEmpty else {
            try await until("the end of the server", within: 20) { !new.isRunning }
            throw Trouble("the server did not start: \(new.lastWords)")
        }
    }

    /// - Throws: ``Trouble`` if it had ended by itself.
    func kill() async throws {
        guard let running = child.withLock({ $0 }) else { return }
        try mustRun()
        running.kill()
        try await until("the end of the server", within: 20) { !running.isRunning }
        running.forget()
        child.withLock { $0 = nil }
    }

    /// - Throws: ``Trouble``, with what it said, if it ended by itself.
    func mustRun() throws {
        guard let child = child.withLock({ $0 }), !child.isRunning else { return }
        throw Trouble("the server ended by itself with \(child.status): \(child.lastWords)")
    }

    private static func output(of child: ChildProcess) async -> Data {
        await withCheckedContinuation { continuation in
            Thread {
                continuation.resume(returning: child.output.fileHandleForReading.availableData)
            }.start()
        }
    }

    // MARK: - Accounts

    func makeAccount(_ name: String) async throws -> String {
        var body = WireNewAccount()
        body.name = name
        return try await code(["accounts"], WireFormat.protobuf.encode(body))
    }

    func newCode(of account: String) async throws -> String {
        try await code(["accounts", account, "codes"], WireFormat.protobuf.encode(WireNewCode()))
    }

    /// Asks for a code with the operator's credential.
    private func code(_ path: [String], _ body: [UInt8]) async throws -> String {
        let credential = try String(contentsOfFile: data + "/operator-credential", encoding: .utf8)
        return try await ServerRequest(
            .post, path, at: ServerAddress(url),
            credential: credential.trimmingCharacters(in: .whitespacesAndNewlines), body: body
        ).answer(WireNewAccountAnswer.self) { $0.code }
    }
}
