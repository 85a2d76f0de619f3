// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import NIOHTTP1
internal import ProcessHarness
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

#if os(Linux)
extension EndToEndTests {
    /// Servers and files that try to make a device run out of memory. The system limits the program
    /// to the memory that is claimed to suffice, and ends it beyond that.
    @Suite struct HostileServerTests {
        private static let megabytesMax = 384
        private static let store = ["--store", Device.identifier]
        private static let mebibyte = 1 << 20

        /// Runs a command against a server that gives this answer to everything.
        ///
        /// - Parameter type: Of the answer; nil, the first that the request accepts.
        private func run(
            _ arguments: [String], type: String? = nil, status: HTTPResponseStatus = .ok,
            body: [UInt8], _ check: (ProgramRun, Stage) async throws -> Void
        ) async throws {
            let server = try await StubServer { request in
                let accepted = request.headers.first(name: "accept")?.prefix { !",;".contains($0) }
                return .init(type ?? String(accepted ?? ""), status: status, body)
            }
            try await onStage { stage in
                try signIn(stage.path("home"), at: server.address)
                let run = try await stage.run(
                    arguments + ["--home", stage.path("home")],
                    megabytesMax: Self.megabytesMax)
                try await check(run, stage)
            }
            try await server.close()
        }

        private func repeated(_ text: String, bytes: Int) -> [UInt8] {
            Array(String(repeating: text, count: bytes / text.utf8.count).utf8)
        }

        @Test(arguments: [7, 60])
        func `a list of devices without end is refused, not read`(_ megabytes: Int) async throws {
            // Every two bytes are a device.
            let body = repeated("\n\0", bytes: megabytes * Self.mebibyte)
            try await run(
                ["device", "list"], type: WireFormat.protobuf.rawValue, body: body
            ) { run, _ in
                #expect(run.status == 69, "\(run)")
                #expect(run.errors.contains("cannot be read: it has more than"), "\(run)")
            }
        }

        @Test(arguments: [5, 60])
        func `so is a problem's description`(_ megabytes: Int) async throws {
            let text = repeated("{},", bytes: megabytes * Self.mebibyte)
            try await run(
                ["device", "list"], type: "application/problem+json", status: .internalServerError,
                body: Array(#"{"x":["#.utf8) + text + Array(#"{}],"detail":"no"}"#.utf8)
            ) { run, _ in
                #expect(run.status == 69, "\(run)")
                #expect(run.errors.utf8.count < 2_000)
            }
        }

        @Test func `a device whose ID is none is refused with a sentence`() async throws {
            var list = WireDeviceList()
            list.devices = [.init()]
            (list.devices[0].id, list.devices[0].name) = ("x", "phone")
            try await run(
                ["device", "rename", "phone", "tablet"], type: WireFormat.protobuf.rawValue,
                body: WireFormat.protobuf.encode(list)
            ) { run, _ in
                #expect(run.status == 69, "\(run)")
                #expect(run.errors.contains("an invalid ID: x"), "\(run)")
            }
        }

        @Test(arguments: [2, 8])
        func `an event without end breaks the stream, and the status says why`(
            _ megabytes: Int
        ) async throws {
            let text = repeated("{},", bytes: megabytes * Self.mebibyte)
            let body =
                Array("event: changes\ndata: {\"records\":[".utf8) + text
                + Array("{}],\"cursor\":\"c\"}\n\n".utf8)
            // On a busy machine, streams time out, and the device polls.
            try await run(["sync", "--timeout", "110"] + Self.store, body: body) { run, stage in
                #expect(run.status == 69, "\(run)")
                #expect(run.errors.contains(" cannot be read"), "\(run)")
                let status = try await stage.run(
                    ["status"] + Self.store + ["--home", stage.path("home")])
                #expect(status.output.contains("cannot be read"), "\(status)")
            }
        }

        @Test func `what a store cannot have does not get to the disk`() async throws {
            // The server announces its limits, and then sends one megabyte after another.
            var ready = WireReady()
            ready.cursor = "c"
            ready.config = WireConfig(
                ServerConfig(
                    serverMilliseconds: 1_800_000_000_000, limits: StoreLimits(),
                    allowance: Allowance(), deletionsRememberedSeconds: 1))
            let hello =
                event("changes", WireFormat.json.encode(WireChanges(changes([], isWhole: true))))
                + event("ready", WireFormat.json.encode(ready))
            var flood: [UInt8] = []
            for number in 0..<20 {
                let record = Record(
                    key: try Key("\(number)"),
                    content: .value(.string(String(repeating: "x", count: Self.mebibyte))),
                    stamp: Stamp(
                        HybridTimestamp(milliseconds: 1_800_000_000_000, counter: 0),
                        DeviceID(rawValue: 1)))
                flood += event("changes", WireFormat.json.encode(WireChanges(changes([record]))))
            }
            try await run(["sync"] + Self.store, type: "text/event-stream", body: hello) {
                run, stage in
                #expect(run.status == 0, "\(run)")
                let server = try await StubServer { [flood] _ in
                    .init("text/event-stream", flood)
                }
                let home = stage.path("home")
                try signIn(home, at: server.address)
                let second = try await stage.run(
                    ["sync", "--timeout", "110", "--home", home] + Self.store,
                    megabytesMax: Self.megabytesMax)
                let status = try await stage.run(["status", "--home", home] + Self.store)
                try await server.close()
                #expect(second.status == 69, "\(second)")
                // The last error may already be that of another attempt.
                #expect(
                    (second.errors + status.output).contains(
                        "the server sent more than a store may have"),
                    "\(second) \(status)")
                #expect(bytes(in: home) < 16 * Self.mebibyte)
            }
        }

        private func bytes(in folder: String) -> Int {
            let files = FileManager.default.subpaths(atPath: folder) ?? []
            return files.reduce(0) { sum, file in
                let size = try? FileManager.default.attributesOfItem(atPath: "\(folder)/\(file)")[
                    .size]
                return sum + ((size as? NSNumber)?.intValue ?? 0)
            }
        }

        private func event(_ name: String, _ data: [UInt8]) -> [UInt8] {
            Array("event: \(name)\ndata: ".utf8) + data + Array("\n\n".utf8)
        }

        private func changes(_ records: [Record], isWhole: Bool = false) -> ChangeSet {
            ChangeSet(
                records: records, cursor: Cursor("c")!, serverMilliseconds: 1_800_000_000_000,
                isWhole: isWhole)
        }

        @Test func `a file of zeros is not an export`() async throws {
            let body = [UInt8](repeating: 0, count: 60 * Self.mebibyte)
            let server = try await StubServer { request in
                request.uri == "/v1/sealing"
                    ? .init(body: []) : .init("application/json", body)
            }
            try await onStage { stage in
                try signIn(stage.path("home"), at: server.address)
                let run = try await stage.run(
                    "account", "export", "--output", stage.path("a.json"), "--home",
                    stage.path("home"))
                #expect(
                    run.status == 69 && run.errors.contains("not send a complete export"), "\(run)")
                #expect(!FileManager.default.fileExists(atPath: stage.path("a.json")))
            }
            try await server.close()
        }

        // MARK: - Files

        private func importing(
            _ write: (String) throws -> Void, _ word: String,
            at location: SourceLocation = #_sourceLocation
        ) async throws {
            try await onStage { stage in
                let file = stage.path("file")
                try write(file)
                let run = try await stage.run(
                    ["import", file, "--home", stage.path("home")] + Self.store,
                    megabytesMax: Self.megabytesMax)
                #expect(run.status == 65, "\(run)", sourceLocation: location)
                #expect(run.errors.contains(word), "\(run)", sourceLocation: location)
            }
        }

        @Test func `a file to import is refused by its size before it is read`() async throws {
            try await importing(
                { file in
                    #expect(FileManager.default.createFile(atPath: file, contents: nil))
                    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
                    try handle.truncate(atOffset: 3 << 30)
                    try handle.close()
                }, "more than 64 MB")
        }

        @Test func `a property list of a million elements is not made into objects`() async throws {
            let head = "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict><key>a</key><array>"
            try await importing(
                { file in
                    let body =
                        Array(head.utf8) + repeated("<true/>", bytes: 30 * Self.mebibyte)
                        + Array("</array></dict></plist>".utf8)
                    try Data(body).write(to: URL(fileURLWithPath: file))
                }, "more than 1048576 values")
            try await importing(
                { file in
                    let body =
                        Array("{a=(".utf8) + repeated("1,", bytes: 30 * Self.mebibyte)
                        + Array("1);}".utf8)
                    try Data(body).write(to: URL(fileURLWithPath: file))
                }, "the old text format")
        }

        @Test func `an account's store is not read beyond what a store may be`() async throws {
            let head = #"{"format":"ubiquity-account-1","stores":[{"identifier":""#
            let record = #"","records":[{"key":"a","value":{"array":{"values":["#
            try await importing(
                { file in
                    let body =
                        Array((head + Device.identifier + record).utf8)
                        + repeated(#"{"boolean":true},"#, bytes: 60 * Self.mebibyte)
                        + Array(#"{"boolean":true}]}}}]}]}"#.utf8)
                    try Data(body).write(to: URL(fileURLWithPath: file))
                }, "larger than it may be")
        }
    }
}
#endif
