// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import SwiftProtobuf
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

/// Tests of what the server knows about the changes that each device has saved.
struct DeliveryTests {
    private func deliveries(
        _ device: RunningDevice, key: String? = nil
    ) async throws -> [String: WireDelivery] {
        let answer = try await device.get(
            "/v1/stores/notes/devices" + (key.map { "?key=\($0)" } ?? ""))
        let list = try answer.message(WireDeliveries.self).deliveries
        return Dictionary(list.map { ($0.device.id, $0) }) { first, _ in first }
    }

    @Test func `a device has what it wrote, and what it said to have saved`() async throws {
        try await withServer { server in
            let writer = try await server.newDevice()
            let reader = try await server.furtherDevice()
            var known = try await deliveries(writer)
            #expect(known.count == 2 && !known.values.contains { $0.hasStore_p || $0.isCurrent })
            let first = try await writer.set("a", "1")
            let second = try await writer.set("b", "2")
            known = try await deliveries(writer)
            #expect(known[writer.id]?.isCurrent == true)
            #expect(known[reader.id]?.hasStore_p == false && known[reader.id]?.behind == 0)
            // What it reads now is not on its disk yet.
            _ = try await reader.pull()
            _ = try await reader.get(
                "/v1/stores/notes/changes?since=\(second.cursor)&saved=false")
            #expect(try await deliveries(writer)[reader.id]?.hasStore_p == false)
            _ = try await reader.pull(since: first.cursor)
            known = try await deliveries(writer)
            #expect(known[reader.id]?.behind == 1 && known[reader.id]?.isCurrent == false)
            #expect(try await deliveries(writer, key: "a")[reader.id]?.isCurrent == true)
            #expect(try await deliveries(writer, key: "b")[reader.id]?.isCurrent == false)
            _ = try await reader.pull(since: second.cursor)
            #expect(try await deliveries(writer)[reader.id]?.isCurrent == true)
        }
    }

    @Test func `a push says what is saved, and what the clock shows`() async throws {
        let clock = TestClock()
        try await withServer({ $0.clock = clock.clock }) { server in
            let writer = try await server.newDevice()
            let other = try await server.furtherDevice()
            let first = try await writer.push([.write("a", .integer(1), at: clock.now)])
            var push = WirePush()
            push.transactions = [
                .with { $0.writes = [.write("b", .integer(2), at: clock.now)] }
            ]
            push.saved = try first.message(WirePushAnswer.self).cursor
            push.deviceMilliseconds = UInt64(clock.now + 7_200_000)
            let answer = try await server.send(
                "POST", "/v1/stores/notes/changes", credential: other.credential, push)
            #expect(answer.status == 200)
            let known = try await deliveries(writer)
            #expect(known[other.id]?.isCurrent == true)
            #expect(known[writer.id]?.behind == 1)
            try await until("the clock is listed") {
                let list = try await writer.get("/v1/devices").message(WireDeviceList.self)
                let device = list.devices.first { $0.id == other.id }
                return device?.clockAheadMilliseconds == 7_200_000
            }
        }
    }

    @Test func `a cursor of another history says nothing`() async throws {
        try await withServer { server in
            let writer = try await server.newDevice()
            let reader = try await server.furtherDevice()
            try await writer.set("a", "1")
            var push = WirePush()
            push.transactions = [.with { $0.writes = [.write("b", "2")] }]
            push.saved = "0123456789abcdef-1"
            _ = try await server.send(
                "POST", "/v1/stores/notes/changes", credential: reader.credential, push)
            #expect(try await deliveries(writer)[reader.id]?.behind == 1)
            push.saved = "not a cursor"
            let refused = try await server.send(
                "POST", "/v1/stores/notes/changes", credential: reader.credential, push)
            #expect(refused.status == 400)
        }
    }

    @Test func `a confined device sees itself, and is not expected to have other stores`()
        async throws
    {
        try await withServer { server in
            let device = try await server.newDevice()
            let here = try await server.furtherDevice(stores: ["notes"])
            _ = try await server.furtherDevice(stores: ["other"])
            try await device.set("a", "1")
            #expect(try await deliveries(device).keys.sorted() == [device.id, here.id].sorted())
            #expect(try await deliveries(here).keys.sorted() == [here.id])
        }
    }

    private static let chrome =
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0"

    @Test func `the version is listed, of other clients with their name`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            for (agent, version) in [
                ("ubiquity/9.8.7", "9.8.7"), ("curl/8.5.0 (x)", "curl/8.5.0"),
                (
                    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
                    "Firefox/140.0"
                ),
                ("\(Self.chrome) Safari/537.36", "Chrome/140.0.0.0"),
                ("\(Self.chrome) Safari/537.36 Edg/140.0.1.2", "Edg/140.0.1.2"),
                ("Mozilla/5.0 (Mac) AppleWebKit/605.1 Version/18.5 Safari/605.1", "Safari/18.5"),
                ("Mozilla/5.0 (unheard of)", "Mozilla/5.0"),
            ] {
                _ = try await server.send(
                    "GET", "/v1/stores/notes/changes", credential: device.credential,
                    headers: ["user-agent": agent])
                try await until("the version is listed") {
                    try await device.get("/v1/devices/\(device.id)").message(WireDevice.self)
                        .version == version
                }
            }
        }
    }
}
