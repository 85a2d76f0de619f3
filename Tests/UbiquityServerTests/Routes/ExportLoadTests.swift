// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import NIOCore
import Synchronization
import Testing
import UbiquityCore
import UbiquityWire

@testable import UbiquityServer

@Suite(.serialized) struct ExportLoadTests {
    private let large = String(repeating: "x", count: 60_000)

    private func fill(_ device: RunningDevice, _ values: String...) async throws {
        for value in values {
            let answer = try await device.push((0..<14).map { .write("k\($0)", value) }, .protobuf)
            try #require(answer.status == 200)
        }
    }

    private func begin(
        _ device: RunningDevice, reads: Bool, _ query: String = ""
    ) async throws -> RawConnection {
        let connection = try await RawConnection.open(device.server.port, reads: reads)
        await connection.send(
            "GET /v1/account/export\(query) HTTP/1.1\r\nHost: a\r\n"
                + "Authorization: Bearer \(device.credential)\r\n\r\n")
        return connection
    }

    @Test func `an export goes out in slices, however large the store and its history are`()
        async throws
    {
        try await withServer { server in
            let device = try await server.newDevice()
            try await fill(device, large, large + "y", large + "z")
            let connection = try await begin(device, reads: true, "?with_history=true")
            let answer = try await connection.receive("\r\n0\r\n\r\n")
            connection.close()
            let pieces = answer.split(separator: "\r\n").compactMap { line in
                line.utf8.count < 8 ? Int(line, radix: 16) : nil
            }
            #expect(pieces.reduce(0, +) > 40 * large.utf8.count)
            // A slice of stored bytes, and the value that exceeds it.
            #expect(pieces.allSatisfy { $0 < 256 << 10 }, "\(pieces)")
        }
    }

    @Test func `exports that nobody reads keep neither others nor the operator from exporting`()
        async throws
    {
        try await withServer { server in
            var idle: [RawConnection] = []
            for number in 0..<4 {
                let device = try await server.newDevice(account: "slow\(number)")
                try await fill(device, large)
                idle.append(try await begin(device, reads: false))
            }
            let other = try await server.newDevice()
            try await other.set("a", "1")
            // Once they all have begun.
            for _ in 0..<4 { #expect(try await other.pull().status == 200) }
            #expect(try await other.get("/v1/account/export").status == 200)
            for name in ["ada", "slow0"] {
                let path = "/v1/accounts/\(name)/export"
                #expect(try await server.sendInFolder("GET", path).status == 200)
            }
            for connection in idle { connection.close() }
        }
    }

    @Test func `while two accounts export in a loop, a third reads and pushes`() async throws {
        try await withServer { server in
            let other = try await server.newDevice()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for name in ["one", "two"] {
                    let device = try await server.newDevice(account: name)
                    try await fill(device, large, large + "y", large + "z")
                    group.addTask {
                        for _ in 0..<8 {
                            let answer = try await device.get(
                                "/v1/account/export?with_history=true")
                            #expect(answer.status == 200 && answer.text.hasSuffix("\n]}\n"))
                        }
                    }
                }
                for number in 0..<20 {
                    try await other.set("k", "\(number)")
                    #expect(try await other.pull().status == 200)
                }
                try await group.waitForAll()
            }
        }
    }

    /// An export of a store of several slices to a reader who takes some seconds for each.
    private func export(
        secondsPerSlice: Int64, inFolder: Bool = false, clock: TestClock = TestClock(),
        _ change: (inout ExportRoutes) -> Void = { _ in },
        reading: @escaping @Sendable () -> Void = {}
    ) async throws -> [Int] {
        var settings = ServerSettings(dataFolder: "")
        settings.clock = clock.clock
        let storage = try SQLiteServerStorage.inMemory()
        for number in 0..<14 {
            let record = Sample.record("k\(number)", .string(large), at: 1_000)
            try #require(try storage.commit(Sample.push(record)) != nil)
        }
        let server = Server(
            settings, storage: storage, operatorHash: nil, logger: Logger(label: "test"))
        defer { server.close() }
        var exports = server.routes.exports
        if inFolder { exports = exports.inFolder(exports.gate) }
        change(&exports)
        let slices = Mutex<[Int]>([])
        let permit = try exports.shares.take(Sample.account.id)
        let export = AccountExport(
            of: Sample.account, storage: storage, history: nil, now: 1_000, permit: permit)
        #expect(throws: Busy()) { try exports.shares.take(Sample.account.id) }
        let body = exports.body(export, of: Sample.account.id, permit) {}
        do {
            try await body { slice in
                clock.advance(seconds: secondsPerSlice)
                reading()
                slices.withLock { $0.append(slice.readableBytes) }
            }
        } catch { slices.withLock { $0.append(-1) } }
        permit.end()
        try exports.shares.take(Sample.account.id).end()
        return slices.withLock { $0 }
    }

    @Test func `an export ends when its reader is too slow, or takes too long at all`() async throws
    {
        let whole = try await export(secondsPerSlice: 5)
        #expect(whole.count > 7 && !whole.contains(-1))
        let tooSlow = try await export(secondsPerSlice: 100)
        #expect(tooSlow.count < whole.count && tooSlow.last == -1)
        let tooLong = try await export(secondsPerSlice: 5) { $0.pace?.totalMilliseconds = 12_000 }
        #expect(tooLong.count == 4 && tooLong.last == -1)
        #expect(try await export(secondsPerSlice: 1_000, inFolder: true) == whole)
    }

    @Test func `an export holds no more than the slice that it sends`() async throws {
        let memory = ByteBudget(max: 64 << 20)
        let held = Mutex(0)
        _ = try await export(secondsPerSlice: 0) { exports in
            exports.shares = AccountShares(of: memory, placesMax: 1)
        } reading: {
            held.withLock { $0 = max($0, memory.bytes) }
        }
        #expect((1..<(256 << 10)).contains(held.withLock(\.self)))
        #expect(memory.bytes == 0)
    }

    @Test func `an export waits while its memory is used up, and no longer than it may take`()
        async throws
    {
        let uptime = Mutex<Int64>(0)
        let clock = TestClock(uptime: {
            uptime.withLock { uptime in
                uptime += 1_000
                return uptime
            }
        })
        let taken = ByteBudget(max: 1)
        #expect(taken.take(1))
        let slices = try await export(secondsPerSlice: 0, clock: clock) { exports in
            exports.pace?.totalMilliseconds = 6_000
            exports.shares = AccountShares(of: taken, placesMax: 1, bytesMin: 1)
        }
        #expect(slices == [-1])
    }
}
