// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `A key that no history must have` {
    let cloud = SteppedCloud()
    let key = try! Key("token")

    private func settle(_ processes: SteppedDevice...) {
        for _ in 0..<100 {
            cloud.settle()
            var isDone = true
            for process in processes where process.step() { isDone = false }
            if isDone { return }
        }
        Issue.record("the processes did not come to rest")
    }

    /// Whether the device sent this value of the key as one that must not be kept; nil if it did
    /// not send it.
    private func isMarked(_ value: PropertyListValue?, by device: SteppedDevice) -> Bool? {
        device.pushes.flatMap(\.transactions).reversed().lazy.compactMap { transaction in
            transaction.writes.first { $0.key == key && $0.content.value == value }
                .map { transaction.unkept.contains($0.key) }
        }.first
    }

    @Test func `is marked in a push, and so are its parts`() throws {
        let a = cloud.device(unkept: ["token", "count"])
        cloud.settle()
        try a.write(["token": .integer(1), "theme": .integer(2), "tokens": .integer(3)])
        try a.count(try Key("count"), by: 1)
        cloud.settle()
        let transactions = a.pushes.flatMap(\.transactions)
        let unkept = Set(transactions.flatMap(\.unkept).map(\.whole.string))
        #expect(unkept == ["token", "count"])
        let parts = transactions.flatMap(\.unkept).filter(\.isPart)
        #expect(!parts.isEmpty)
    }

    @Test func `is marked where a process sends it that does not exclude it`() throws {
        let commandLine = cloud.device()
        let app = commandLine.helper(unkept: ["token"])
        settle(app)
        try app.write(["token": .integer(1), "theme": .integer(1)])
        settle(app)
        let sent = try #require(commandLine.pushes.flatMap(\.transactions).last)
        #expect(sent.writes.count == 2)
        #expect(sent.unkept == [key])
        app["token"] = nil
        settle(app)
        #expect(isMarked(nil, by: commandLine) == true)
    }

    @Test func `is marked where it waited, and the device starts again without the app`() throws {
        let app = cloud.device(unkept: ["token"])
        cloud.settle()
        app.goOffline()
        app["token"] = .integer(1)
        cloud.settle()
        let commandLine = app.restarted()
        while commandLine.step() {}
        #expect(isMarked(.integer(1), by: commandLine) == true)
    }

    @Test func `is marked where a file of before says nothing, and the app sends it`() throws {
        let old = cloud.device()
        cloud.settle()
        old.goOffline()
        old["token"] = .integer(1)
        cloud.settle()
        let app = SteppedDevice(
            number: Int(old.id.rawValue), cloud: cloud, clockError: 0, policy: .serverWins,
            disk: old.disk, unkept: ["token"])
        while app.step() {}
        #expect(isMarked(.integer(1), by: app) == true)
    }

    @Test func `may be kept where a process writes it that does not exclude it`() throws {
        let commandLine = cloud.device()
        let app = commandLine.helper(unkept: ["token"])
        settle(app)
        app["token"] = .integer(1)
        settle(app)
        commandLine["token"] = .integer(2)
        settle(app)
        #expect(isMarked(.integer(1), by: commandLine) == true)
        #expect(isMarked(.integer(2), by: commandLine) == false)
        app["token"] = .integer(3)
        settle(app)
        #expect(isMarked(.integer(3), by: commandLine) == true)
    }

    @Test func `is marked where two processes write it at once, if that write wins`() throws {
        let commandLine = cloud.device()
        let app = commandLine.helper(unkept: ["token"])
        settle(app)
        commandLine["token"] = .integer(1)
        cloud.pass(milliseconds: 5)
        app["token"] = .integer(2)
        settle(app)
        #expect(isMarked(.integer(2), by: commandLine) == true)
        app["token"] = .integer(3)
        cloud.pass(milliseconds: 5)
        commandLine["token"] = .integer(4)
        settle(app)
        #expect(isMarked(.integer(4), by: commandLine) == false)
    }

    @Test func `is marked where it is taken back`() throws {
        let commandLine = cloud.device()
        let app = commandLine.helper(unkept: ["token"])
        settle(app)
        try app.engine.revert(to: [key: .value(.integer(1))], at: app.reading)
        settle(app)
        #expect(isMarked(.integer(1), by: commandLine) == true)
    }

    /// The process that leads, whichever it is, sends again what a restored server lacks.
    @Test func `is marked where it is offered to a restored server`() throws {
        let commandLine = cloud.device()
        let app = commandLine.helper(unkept: ["token"])
        settle(app)
        let copy = cloud.server
        app["token"] = .integer(1)
        settle(app)
        #expect(commandLine.engine.waitingRecords.isEmpty)
        let sent = commandLine.pushes.count
        let later = commandLine.restarted()
        cloud.replaceServer(by: SteppedServer(epoch: copy.epoch + 1))
        while later.step() {}
        #expect(commandLine.pushes.count == sent)
        #expect(isMarked(.integer(1), by: later) == true)
    }

    @Test func `is not in the device's own history where a later write came first`() throws {
        let commandLine = cloud.device()
        let app = commandLine.helper(unkept: ["token"])
        let b = cloud.device()
        settle(app)
        commandLine.goOffline()
        try app.write(["token": .integer(1)])
        try app.write(["theme": .integer(1)])
        settle(app)
        cloud.pass(milliseconds: 1_000)
        try b.write(["token": .integer(2), "theme": .integer(2)])
        settle(app)
        commandLine.goOnline()
        commandLine.holdsAnswers = true
        settle(app)
        let superseded = commandLine.disk.refused.filter(\.isSuperseded)
        #expect(superseded.map(\.record.key.string) == ["theme"])
    }

    @Test func `is marked where the device's values are kept at its first sync`() throws {
        func record(_ key: String, _ value: Int64) throws -> Record {
            Record(
                key: try Key(key), content: .value(.integer(value)),
                stamp: Stamp(HybridTimestamp(milliseconds: value), DeviceID(rawValue: 1)))
        }
        let here = try ["token", "theme"].map { name in
            StoredEntry(
                key: try Key(name), confirmed: try record(name, 1), wasUnkept: name == key.string)
        }
        let there = try ["token", "theme"].map { try record($0, 2) }
        let writes = FirstSyncComparison(here, there)
            .writes(keeping: .device, now: 10, by: DeviceID(rawValue: 3))
        #expect(writes.flatMap(\.unkept) == [key])
    }
}
