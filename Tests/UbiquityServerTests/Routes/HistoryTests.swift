// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

/// The history and the snapshots of stores, by HTTP.
struct HistoryTests {
    private let folder: TemporaryFolder
    private let clock = TestClock()

    init() throws { folder = try TemporaryFolder() }

    private func withDevice(
        _ configure: (inout ServerSettings) -> Void = { _ in },
        _ body: (RunningDevice) async throws -> Void
    ) async throws {
        try await withServer(in: folder) { settings in
            settings.clock = clock.clock
            configure(&settings)
        } _: { server in
            try await body(try await server.newDevice())
        }
    }

    private func set(
        _ key: String, _ value: PropertyListValue?, by device: RunningDevice, unkept: Bool = false
    ) async throws {
        clock.advance(seconds: 1)
        var record = WireRecord.write(key, value, at: clock.now)
        record.unkept = unkept
        let answer = try await device.push([record]).message(WirePushAnswer.self)
        try #require(answer.results.first?.committed.writes.first?.applied == true)
    }

    private func versions(
        _ device: RunningDevice, _ query: String = "", _ format: WireFormat = .json
    ) async throws -> WireHistory {
        let answer = try await device.server.send(
            "GET", "/v1/stores/notes/history\(query)", credential: device.credential,
            headers: ["Accept": format.rawValue])
        #expect(answer.status == 200)
        return try answer.message(WireHistory.self, format)
    }

    @Test(arguments: WireFormat.allCases)
    func `a device reads what a key was, page by page`(format: WireFormat) async throws {
        try await withDevice { device in
            for number: Int64 in 1...5 { try await set("a", .integer(number), by: device) }
            try await set("b/ä", .string("x"), by: device)
            try await set("a", nil, by: device)
            var found: [RecordVersion] = []
            var next = ""
            repeat {
                let query = "?key=a&limit=2" + (next.isEmpty ? "" : "&before=\(next)")
                let page = try await versions(device, query, format)
                #expect(page.versions.count == 2)
                #expect(page.serverMilliseconds == UInt64(clock.now))
                found += try page.versions.map { try RecordVersion($0) }
                next = page.next
            } while !next.isEmpty
            #expect(
                found.map(\.record.content)
                    == [.deleted] + (1...5).reversed().map { .value(.integer($0)) })
            #expect(found.map(\.came?.revision) == [7, 5, 4, 3, 2, 1])
            #expect(found[0].outcome == .current)
            let end = RecordVersion.Moment(revision: 7, milliseconds: clock.now)
            #expect(found[1].outcome == .replaced(end, by: found[0].record.stamp.withoutDigest))
            #expect(found[1].record.stamp.device == DeviceID(device.id))
            #expect(try await versions(device, "?key=b%2F%C3%A4", format).versions.count == 1)
            #expect(try await versions(device, "", format).versions.count == 7)
            #expect(try await versions(device, "?key=c", format).versions.isEmpty)
            let pages = try await versions(device, "?limit=1", format)
            #expect(pages.versions.count == 1 && !pages.next.isEmpty)
        }
    }

    @Test(arguments: WireFormat.allCases)
    func `a device reads a store as it was`(format: WireFormat) async throws {
        try await withDevice { device in
            for number: Int64 in 1...3 { try await set("a", .integer(number), by: device) }
            try await set("secret", .integer(1), by: device, unkept: true)
            try await set("secret", .integer(2), by: device, unkept: true)
            func snapshot(_ query: String) async throws -> StoreSnapshot {
                let answer = try await device.server.send(
                    "GET", "/v1/stores/notes/snapshot\(query)", credential: device.credential,
                    headers: ["Accept": format.rawValue])
                #expect(answer.status == 200)
                return try StoreSnapshot(try answer.message(WireSnapshot.self, format))
            }
            let then = try await snapshot("?revision=2")
            #expect(then.records.map(\.content) == [.value(.integer(2))])
            #expect(then.revision == 2)
            #expect(then.forgottenKeys == [try Key("secret")])
            let byTime = try await snapshot("?milliseconds=\(clock.now - 2_500)")
            #expect(byTime.records == then.records)
            let now = try await snapshot("")
            #expect(now.revision == 5)
            #expect(now.records.count == 2)
            #expect(now.forgottenKeys.isEmpty)
            #expect(try await snapshot("?revision=0").records.isEmpty)
            // What must not be kept is in no list.
            #expect(try await versions(device).versions.count == 3)
            let other = try await device.get("/v1/stores/other/snapshot?revision=7")
            #expect(try other.message(WireSnapshot.self).revision == 0)
        }
    }

    @Test func `a moment that is not known any more says which one is`() async throws {
        try await withDevice {
            $0.historySeconds = 60
        } _: { device in
            for number: Int64 in 1...3 { try await set("a", .integer(number), by: device) }
            let since = clock.now
            clock.advance(seconds: 61)
            let answer = try await device.get("/v1/stores/notes/snapshot?revision=2")
            #expect(answer.status == 410)
            let problem = try answer.problem
            #expect(problem.code == "history-forgotten")
            #expect(problem.knownSinceMilliseconds == UInt64(since))
            let known = try await device.get(
                "/v1/stores/notes/snapshot?milliseconds=\(problem.knownSinceMilliseconds)")
            #expect(try known.message(WireSnapshot.self).revision == 3)
        }
    }

    @Test func `a server without a history says so`() async throws {
        try await withDevice {
            $0.historySeconds = 0
        } _: { device in
            try await set("a", .integer(1), by: device)
            for path in ["history", "snapshot?revision=1"] {
                let answer = try await device.get("/v1/stores/notes/\(path)")
                #expect(answer.status == 404)
                #expect(try answer.problem.code == "history-off")
            }
        }
    }

    @Test func `what is malformed is refused`() async throws {
        try await withDevice { device in
            let queries = [
                "history?limit=0", "history?limit=1001", "history?limit=x", "history?key=",
                "history?before=1", "history?before=1-2-3-4-5-x", "snapshot?revision=-1",
                "snapshot?revision=x", "snapshot?milliseconds=",
                "snapshot?revision=1&milliseconds=1",
            ]
            for query in queries {
                let answer = try await device.get("/v1/stores/notes/\(query)")
                #expect(answer.status == 400, "\(query)")
            }
            let answer = try await device.server.send(
                "POST", "/v1/stores/notes/history", credential: device.credential)
            #expect(answer.status == 405)
            #expect(answer.headers["allow"] == "GET, HEAD, OPTIONS")
        }
    }

    @Test func `a page ends where it would become too large`() async throws {
        try await withDevice { device in
            let value = PropertyListValue.data([UInt8](repeating: 7, count: 700_000))
            for number in 1...4 {
                try await set("a", number == 2 ? .integer(1) : value, by: device)
            }
            let first = try await versions(device)
            #expect(first.versions.count == 1 && !first.next.isEmpty)
            let second = try await versions(device, "?before=\(first.next)")
            #expect(second.versions.count == 2)
        }
    }
}
