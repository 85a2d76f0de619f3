// SPDX-License-Identifier: Apache-2.0

internal import NIOHTTP1
internal import SwiftProtobuf
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

/// Pushes that are small to send and cost much: an answer, the writer's time, a disk.
@Suite(.serialized) struct CostlyPushTests {
    private func push(
        _ transactions: [[WireRecord]], by device: RunningDevice, store: String = "notes"
    ) async throws -> RunningServer.Answer {
        var push = WirePush()
        push.transactions = transactions.map { writes in .with { $0.writes = writes } }
        return try await device.server.send(
            "POST", "/v1/stores/\(store)/changes", credential: device.credential, push, .protobuf)
    }

    private func expectTooLarge(_ answer: RunningServer.Answer) throws {
        #expect(answer.status == 413)
        #expect(try answer.problem.code == "body-too-large")
    }

    // MARK: - The answer

    @Test func `an answer does not repeat a value as often as it is asked to`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            try await device.set("a", String(repeating: "x", count: 1 << 20))
            let old = WireRecord.write("a", .boolean(true), at: 1)
            let attack = try await push(Array(repeating: [old], count: 2_200), by: device)
            try expectTooLarge(attack)
            #expect(try await device.pull().message(WireChanges.self).records.count == 1)
            let once = try await push([[old]], by: device)
            #expect(once.status == 200 && once.body.count > 1 << 20)
        }
    }

    @Test func `nor one of nothing, a hundred thousand times`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let nothing = PropertyListValue.array(Array(repeating: .string(""), count: 100_000))
            #expect(try await device.push([.write("a", nothing)], .protobuf).status == 200)
            let old = WireRecord.write("a", .boolean(true), at: 1)
            try expectTooLarge(try await push([[old], [old], [old]], by: device))
        }
    }

    @Test func `a push may write a key again`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            try await device.set("a", "now")
            let olds = (1...100).map { WireRecord.write("a", .boolean(true), at: $0) }
            let answer = try PushAnswer(
                try await push(olds.map { [$0] }, by: device)
                    .message(WirePushAnswer.self, .protobuf))
            #expect(answer.results.count == 100)
        }
    }

    @Test func `a store that is too large for an answer is not sent`() throws {
        let value = PropertyListValue.string(ExactString(String(repeating: "x", count: 1 << 20)))
        let records = (1...300).map { Sample.record("k\($0)", value, at: 500) }
        try StoreReader.checkAnswer(of: Array(records.prefix(100)))
        let refusal = #expect(throws: Problem.self) { try StoreReader.checkAnswer(of: records) }
        #expect(refusal?.status.code == 507)
    }

    // MARK: - The work

    @Test func `a push counts its writes, however few bytes they have`() async throws {
        try await withServer({ $0.allowance = .init(burst: 10_000) }) { server in
            let device = try await server.newDevice()
            func deletions(_ count: Int) -> [WireRecord] {
                (0..<count).map { .write("\($0)", nil, at: 1_000) }
            }
            try expectTooLarge(try await push([deletions(40_000)], by: device))
            #expect(try await push([deletions(30_000)], by: device).status == 200)
        }
    }

    @Test func `a push has no more elements than a whole store may have`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            // Two bytes each, and an object in memory.
            let empty: [[WireRecord]] = Array(repeating: [], count: 2_000_000)
            try expectTooLarge(try await push(empty, by: device))
            #expect(try await push(Array(empty.prefix(10)), by: device).status != 413)
        }
    }

    @Test func `all confined devices of an account have one allowance together`() async throws {
        try await withServer({ $0.allowance = .init(burst: 10, perSecond: 0.001) }) { server in
            let own = try await server.newDevice()
            let apps = [
                try await server.furtherDevice(stores: ["notes"]),
                try await server.furtherDevice(stores: ["notes", "other"]),
            ]
            let large = String(repeating: "x", count: 100_000)
            #expect(try await apps[0].push([.write("a", large)]).status == 200)
            #expect(try await apps[1].push([.write("b", "x")]).status == 429)
            #expect(try await own.push([.write("b", "x")]).status == 200)
        }
    }

    @Test func `a write that must not be kept is charged for the history that is read for it`()
        async throws
    {
        let clock = TestClock()
        try await withServer({
            $0.allowance = .init(burst: 4, perSecond: 1)
            $0.clock = clock.clock
        }) { server in
            let device = try await server.newDevice()
            let turns = (1...2).map { (turn: Int64) in
                (0..<1_000).map { WireRecord.write("\($0)", .boolean(true), at: turn) }
            }
            #expect(try await push(turns, by: device).status == 200)
            clock.advance(seconds: 1_000)
            for _ in 0..<2 {
                #expect(try await device.push([.write("a", .boolean(true), at: 3)]).status == 200)
            }
            clock.advance(seconds: 1_000)
            var secret = WireRecord.write("a", .boolean(false), at: 4)
            secret.unkept = true
            #expect(try await push([[secret]], by: device).status == 200)
            #expect(try await device.push([.write("b", "x")]).status == 429)
        }
    }

    @Test func `a large push takes as much of the allowance as many small ones`() async throws {
        try await withServer({ $0.allowance = .init(burst: 10, perSecond: 0.001) }) { server in
            let large = String(repeating: "x", count: 200_000)
            let first = try await server.newDevice()
            #expect(try await first.push([.write("a", large)]).status == 200)
            #expect(try await first.push([.write("b", "x")]).status == 429)
            let second = try await server.furtherDevice()
            #expect(try await second.push([.write("a", large)]).status == 200)
            // The account has used up its own, though this device has not.
            let third = try await server.furtherDevice()
            #expect(try await third.push([.write("b", "x")]).status == 429)
            let other = try await server.newDevice(account: "bob")
            #expect(try await other.push([.write("b", "x")]).status == 200)
        }
    }
}
