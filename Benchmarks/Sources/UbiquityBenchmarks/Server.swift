// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A real server in a process of its own, with one account.
final class Server {
    private let workshop: Workshop
    private let child: Child
    private let data: String
    let port: Int
    private var devices = 0
    private static let account = "benchmark"

    private struct Ready: Decodable { var port: Int }
    private struct Code: Decodable { var code: String }
    private struct SignedIn: Decodable { var id: String }
    private struct Enrolled: Decodable { var credential: String }

    init(_ workshop: Workshop, name: String) throws {
        self.workshop = workshop
        data = workshop.path("server-\(name)")
        var child = try workshop.start(
            .ubiquity,
            [
                "serve", "--data", data, "--port", "0", "--json", "--log-level", "error",
                "--end-with-input", "--push-burst", "100000000", "--pushes-per-second", "1000000",
                "--request-burst", "100000000", "--requests-per-second", "1000000",
            ])
        let line = try child.lines.next(seconds: 30)
        port = try JSONDecoder().decode(Ready.self, from: Data(line.utf8)).port
        self.child = child
        let command = ["account", "create", Self.account, "--data", data]
        _ = try workshop.run(command, giving: Code.self)
    }

    func end() { child.end() }

    private func newCode() throws -> String {
        let command = ["account", "code", Self.account, "--data", data]
        return try workshop.run(command, giving: Code.self).code
    }

    /// - Returns: The home of a device that is signed in and has never opened a store.
    func newDevice() throws -> String {
        devices += 1
        let home = "\(data)-device-\(devices)"
        let command = [
            "sign-in", "--server", "http://127.0.0.1:\(port)", "--code", try newCode(),
            "--device-name", "device-\(devices)", "--home", home,
        ]
        _ = try workshop.run(command, giving: SignedIn.self)
        return home
    }

    /// - Returns: The credential of a device that speaks the protocol itself.
    func newCredential() throws -> String {
        let body = "{\"code\":\"\(try newCode())\",\"deviceName\":\"raw\"}"
        let connection = try HTTPConnection(port: port)
        let answer = try connection.exchange(
            HTTPConnection.request("POST", "/v1/sign-in", body: body))
        return try JSONDecoder().decode(Enrolled.self, from: Data(answer)).credential
    }
}
