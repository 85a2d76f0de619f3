// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Logging
import Ubiquity
import UbiquityCore
import UbiquityServer
import UbiquityWire

/// A server that runs in the tests' process.
struct Cloud: Sendable {
    private let folder: String
    private let port: Int

    /// Tests run side by side, and a process may have some 1,000 files open.
    private static let turns = Turns(4)

    /// Runs a test against a server, and stops it.
    static func with(_ body: (Cloud) async throws -> Void) async throws {
        await turns.begin()
        do {
            try await run(body)
            await turns.end()
        } catch {
            await turns.end()
            throw error
        }
    }

    private static func run(_ body: (Cloud) async throws -> Void) async throws {
        let folder = NSTemporaryDirectory() + "ubiquity-cloud-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var settings = ServerSettings(dataFolder: folder)
        settings.port = 0
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let running = Task { [settings] in
            defer { port.finish() }
            try await runServer(settings, logger: .silent) { port.yield($0.port) }
        }
        defer { running.cancel() }
        guard let port = await ports.first(where: { _ in true }) else {
            return try await running.value
        }
        try await body(Cloud(folder: folder, port: port))
    }

    /// Runs a test against a server with two devices of one account.
    static func withTwoDevices(_ body: (Cloud, Device, Device) async throws -> Void) async throws {
        try await with { cloud in
            let (a, b) = (try Device(), try Device())
            try await cloud.signIn(a, isFirst: true)
            try await cloud.signIn(b)
            try await body(cloud, a, b)
        }
    }

    func signIn(_ device: Device, as account: String = "ann", isFirst: Bool = false) async throws {
        let address = "http://127.0.0.1:\(port)"
        let file = folder + "/operator-credential"
        let credential = try String(contentsOfFile: file, encoding: .utf8)
        var body = WireNewAccount()
        body.name = account
        let code = try await ServerRequest(
            .post, isFirst ? ["accounts"] : ["accounts", account, "codes"],
            at: ServerAddress(address),
            credential: credential.trimmingCharacters(in: .whitespacesAndNewlines),
            body: isFirst ? WireFormat.protobuf.encode(body) : nil
        ).answer(WireNewAccountAnswer.self) { $0.code }
        try await UbiquityAccount.signIn(
            server: address, code: code, deviceName: "test", home: device.home)
    }
}

extension UbiquitousKeyValueStore {
    /// All is sent.
    var isSettled: Bool { status.pendingKeys.isEmpty }
}
