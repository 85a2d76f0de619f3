// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import NIOHTTP1
internal import SwiftProtobuf
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

struct RefusalTests {
    private static let path = "/v1/stores/notes/changes"

    @Test(arguments: WireFormat.allCases)
    func `a body that cannot be parsed is malformed`(format: WireFormat) async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let bodies: [[UInt8]] = [
                Array("{\"transactions\": [".utf8), [0xFF, 0xFF, 0xFF], Array("[]]".utf8),
                [0x0A, 0x7F],
            ]
            for body in bodies {
                let answer = try await server.send(
                    "POST", Self.path, credential: device.credential, body: body,
                    headers: ["Content-Type": format.rawValue])
                #expect(answer.status == 400)
                #expect(try answer.problem.code == "malformed")
            }
        }
    }

    @Test(arguments: WireFormat.allCases)
    func `a message that means nothing is malformed`(format: WireFormat) async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            var empty = WireRecord()
            empty.key = "a"
            empty.milliseconds = 1
            let wrong: [[WireRecord]] = [
                [], [empty], [.write("", "1")], [.write("a", "1"), .write("a", "2")],
                [.write("a", .integer(1), at: 0)],
                [.write(String(repeating: "k", count: 2_000), PropertyListValue?.none)],
            ]
            for writes in wrong {
                let answer = try await device.push(writes, format)
                #expect(answer.status == 400)
                #expect(try answer.problem.code == "malformed")
            }
            #expect(try await device.get("/v1/stores").message(WireStoreList.self).stores.isEmpty)
        }
    }

    @Test(arguments: [
        ("{", "the body is not JSON."), ("[1]", "the body must be a JSON object."),
        (
            #"{"transactions": [{"writes": [{"key": "a", "milliseconds": "x"}]}]}"#,
            #""transactions[0].writes[0].milliseconds" has a value that is not allowed there."#
        ),
        (
            #"{"transactions": [{}, {"writes": [{"key": "a"}, {"value": {"integer": 0.5}}]}]}"#,
            #""transactions[1].writes[1].value.integer" has a value that is not allowed there."#
        ),
        (#"{"tellsHad": 1}"#, #""tellsHad" has a value that is not allowed there."#),
        (
            #"{"transactions": [{"writes": [{"key": "a", "deleted": true}]}]}"#,
            #"transactions[0].writes[0]: "milliseconds" must be the time of the edit, since 1970."#
        ),
        (
            #"{"transactions": [{"writes": [{"key": "a", "milliseconds": 1}]}]}"#,
            #"transactions[0].writes[0]: either "value" or "deleted": true is required."#
        ),
        (#"{"transactions": [{}]}"#, "transactions[0]: a transaction needs at least one write."),
    ])
    func `a refusal names the field, in the words of the protocol`(
        body: String, detail: String
    ) async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let answer = try await server.send(
                "POST", Self.path, credential: device.credential, body: Array(body.utf8),
                headers: ["Content-Type": "application/json"])
            #expect(answer.status == 400)
            #expect(try answer.problem.detail.lowercased() == detail.lowercased())
        }
    }

    @Test func `a device's name without a visible character is refused`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let operatorCredential = try server.operatorCredential
            for (path, credential) in [
                ("/v1/devices/\(device.id)", device.credential),
                ("/v1/accounts/ada/devices/\(device.id)", operatorCredential),
            ] {
                for name in ["", "  ", "\u{1}"] {
                    let answer = try await server.send(
                        "PATCH", path, credential: credential, WireRename.with { $0.name = name })
                    #expect(answer.status == 400)
                    #expect(try answer.problem.detail.hasPrefix("\"name\" "))
                }
            }
            let shown = try await device.get("/v1/devices/\(device.id)").message(WireDevice.self)
            #expect(shown.name == "laptop")
        }
    }

    @Test func `a body over the limit is refused, with and without its length`() async throws {
        try await withServer({ $0.limits.pushBytesMax = 1_000 }) { server in
            let device = try await server.newDevice()
            let answer = try await device.push([.write("a", String(repeating: "x", count: 1_000))])
            #expect(answer.status == 413)
            #expect(try answer.problem.code == "body-too-large")
            let chunked = try await server.sendChunks(
                "POST", Self.path, credential: device.credential,
                chunks: Array(repeating: String(repeating: "\n", count: 100), count: 20))
            #expect(chunked == 413)
            #expect(try await device.push([.write("a", "small")]).status == 200)
        }
    }

    @Test func `a device over its allowance is asked to wait`() async throws {
        let clock = TestClock()
        try await withServer({
            $0.allowance = .init(burst: 2, perSecond: 0.1)
            $0.clock = clock.clock
        }) { server in
            // Stamped by the clock that stands still.
            func push(by device: RunningDevice) async throws -> RunningServer.Answer {
                try await device.push([.write("a", .string("1"), at: clock.now)])
            }
            let device = try await server.newDevice()
            for _ in 0..<2 { #expect(try await push(by: device).status == 200) }
            let third = try await push(by: device)
            #expect(third.status == 429)
            #expect(try third.problem.code == "too-many-requests")
            #expect(third.headers["retry-after"] == "10")
            #expect(try await push(by: server.furtherDevice()).status == 200)
        }
    }

    @Test func `unknown forms, paths, methods and stores are named`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            func status(
                _ method: String, _ path: String, _ headers: [String: String] = [:]
            ) async throws -> String {
                let answer = try await server.send(
                    method, path, credential: device.credential,
                    body: method == "POST" ? [] : nil, headers: headers)
                return "\(answer.status) \(try answer.problem.code)"
            }
            let xml = ["Content-Type": "text/xml"]
            #expect(try await status("POST", Self.path, xml) == "415 unsupported-media-type")
            let image = ["Accept": "image/png"]
            #expect(try await status("GET", Self.path, image) == "406 not-acceptable")
            #expect(try await status("GET", "/v1/nothing") == "404 not-found")
            #expect(try await status("GET", "/nothing") == "404 not-found")
            for method in ["PUT", "PROPFIND"] {
                #expect(try await status(method, Self.path) == "405 method-not-allowed")
                #expect(try await status(method, "/v1/nothing") == "404 not-found")
            }
            #expect(try await status("GET", "/v1/stores/.x/changes") == "400 malformed")
            #expect(try await status("GET", Self.path + "?since=x") == "400 malformed")
        }
    }

    @Test func `an account cannot have more stores than allowed`() async throws {
        try await withServer({ $0.constants.storesPerAccountMax = 1 }) { server in
            let device = try await server.newDevice()
            try await device.set("a", "1", store: "one")
            let second = try await device.push([.write("a", "1")], store: "two")
            #expect(second.status == 413)
            #expect(try second.problem.code == "too-many")
            try await device.set("b", "1", store: "one")
        }
    }

    @Test func `a problem says what the client should do`() {
        let full = Problem(StorageError.full)
        #expect(full.status.code == 507 && full.code == .storageFull)
        let failed = Problem(StorageError.failed("secret"))
        #expect(failed.status.code == 503 && failed.retryAfterSeconds == 1)
        #expect(!failed.detail.contains("secret"))
        #expect(Problem(Busy()).status.code == 503)
        #expect(Problem(CancellationError()).status.code == 503)
    }

    @Test(arguments: ProblemCode.allCases)
    func `the protocol names every code, with the status that it comes with`(code: ProblemCode)
        throws
    {
        let file = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().appendingPathComponent("../../../docs/PROTOCOL.md")
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        let named = lines.filter { $0.contains("`\(code.rawValue)`") }
        #expect(!named.isEmpty)
        for row in named where row.hasPrefix("| ") {
            #expect(row.hasPrefix("| \(Problem(code, "").status.code) |"))
        }
    }
}
