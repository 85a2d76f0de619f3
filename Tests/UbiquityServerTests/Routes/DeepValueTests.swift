// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Testing
internal import UbiquityCore
internal import UbiquityServer
internal import UbiquityWire

/// The tests make the bodies by hand: their own threads have no room for values so deep.
struct DeepValueTests {
    @Test(arguments: WireFormat.allCases)
    func `the deepest value goes round, through the stream too`(format: WireFormat) async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            var stream = try await server.listen(device)
            let depth = PropertyListValue.depthMax
            let early = Self.body(depth: depth, format)
            #expect(try await Self.push(early, by: device, format).status == 200)
            let late = Self.body(depth: depth, format)
            #expect(try await Self.push(late, by: device, format).status == 200)
            let superseded = try await Self.push(early, by: device, format)
            #expect(superseded.status == 200)
            #expect(superseded.body.count > depth)
            let pulled = try await server.send(
                "GET", "/v1/stores/notes/changes", credential: device.credential,
                headers: ["Accept": format.rawValue])
            #expect(await Self.depth(of: pulled.body, format) == depth)
            _ = try await stream.nextEvent()
            _ = try await stream.nextEvent()
            let event = try #require(try await stream.nextEvent())
            #expect(await Self.depth(of: Array(event.data.utf8), .json) == depth)
        }
    }

    @Test(arguments: WireFormat.allCases)
    func `a value that is too deep is malformed`(format: WireFormat) async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            for depth in [PropertyListValue.depthMax + 1, 2_000, 20_000] {
                let answer = try await Self.push(
                    Self.body(depth: depth, format), by: device, format)
                #expect(answer.status == 400)
                #expect(try answer.problem.code == "malformed")
            }
        }
    }

    @Test(arguments: [UInt8(ascii: "["), UInt8(ascii: "{"), 0x0A])
    func `a body that consists of brackets does no harm`(byte: UInt8) async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            for format in WireFormat.allCases {
                let body: [UInt8] = Array(repeating: byte, count: 1_000_000)
                #expect(try await Self.push(body, by: device, format).status == 400)
            }
        }
    }

    private static func push(
        _ body: [UInt8], by device: RunningDevice, _ format: WireFormat
    ) async throws -> RunningServer.Answer {
        try await device.server.send(
            "POST", "/v1/stores/notes/changes", credential: device.credential, body: body,
            headers: ["Content-Type": format.rawValue, "Accept": format.rawValue])
    }

    /// A push of one value: so many containers but one around a string.
    private static func body(depth: Int, _ format: WireFormat) -> [UInt8] {
        var record = WireRecord.write("k", "bottom")
        switch format {
        case .json:
            let value =
                String(repeating: #"{"array":{"values":["#, count: depth - 1)
                + #"{"string":"bottom"}"# + String(repeating: "]}}", count: depth - 1)
            let write = #"{"key":"k","milliseconds":\#(record.milliseconds),"value":\#(value)}"#
            return Array(#"{"transactions":[{"writes":[\#(write)]}]}"#.utf8)
        case .protobuf:
            record.content = nil
            var value = field(1, Array("bottom".utf8))
            for _ in 1..<depth { value = field(8, field(1, value)) }
            let write = WireFormat.protobuf.encode(record) + field(2, value)
            return field(1, field(1, write))
        }
    }

    /// A protobuf field of bytes.
    private static func field(_ number: UInt8, _ bytes: [UInt8]) -> [UInt8] {
        var header = [number << 3 | 2]
        var count = bytes.count
        while count > 0x7F {
            header.append(UInt8(count & 0x7F) | 0x80)
            count >>= 7
        }
        header.append(UInt8(count))
        return header + bytes
    }

    private static func depth(of changes: [UInt8], _ format: WireFormat) async -> Int {
        await withCheckedContinuation { continuation in
            let thread = Thread {
                let changes = try? ChangeSet(format.decode(WireChanges.self, from: changes))
                var value = changes?.records.first?.content.value
                var depth = 0
                while let current = value {
                    depth += 1
                    guard case .array(let values) = current else { break }
                    value = values.first
                }
                continuation.resume(returning: depth)
            }
            thread.stackSize = 64 << 20
            thread.start()
        }
    }
}
