// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import ProcessHarness
internal import UbiquityCore
internal import UbiquityTestWorker

/// A worker that writes, is killed at a random moment and started again, several times.
struct StormWriter {
    private(set) var record: StormRecord
    private(set) var kills = 0
    /// A sentence for each fault found when the worker was started again.
    private(set) var complaints: [String] = []
    private let stage: Stage
    private let home: String
    private var random: RandomSource

    init(_ name: String, _ stage: Stage, home: String, seed: UInt64) {
        record = StormRecord(writer: name)
        (self.stage, self.home) = (stage, home)
        random = RandomSource(seed: seed)
    }

    /// - Returns: The last worker, which is not killed.
    mutating func run(acknowledged quota: Int, kills: Int) async throws -> WorkerProcess {
        let share = quota / (kills + 1)
        while self.kills < kills {
            // One in four does not live to write.
            if Int.random(in: 1...4, using: &random) == 1 {
                try await dieStarting()
            } else {
                try await dieWriting(after: .random(in: 0...2 * share, using: &random))
            }
            self.kills += 1
        }
        return try await write(atLeast: max(quota - record.acknowledgedCount, share))
    }

    private mutating func dieStarting() async throws {
        let worker = try WorkerProcess(stage, home: home, options: ["--quiet"])
        try await pause(milliseconds: 150)
        try await worker.kill()
    }

    private mutating func dieWriting(after writes: Int) async throws {
        let worker = try await start()
        let enough = record.acknowledgedCount + writes
        var taken = try await storm(worker, writes: Self.endless)
        try await until("\(writes) writes of \(record.writer)") {
            try worker.mustRun()
            try take(worker, &taken)
            return record.acknowledgedCount >= enough
        }
        try await pause(milliseconds: 20)
        try await worker.kill()
        try take(worker, &taken)
    }

    private mutating func write(atLeast writes: Int) async throws -> WorkerProcess {
        let worker = try await start()
        var taken = try await storm(worker, writes: writes)
        try await until("the last \(writes) writes of \(record.writer)") {
            try worker.mustRun()
            return try worker.messages().last == .stormOver
        }
        try take(worker, &taken)
        return worker
    }

    private mutating func start() async throws -> WorkerProcess {
        let worker = try await WorkerProcess.ready(stage, home: home, options: ["--quiet"])
        let values = try await worker.values()
        complaints += StormVerdict([record]).complaints(
            aboutOwnKeysOf: record.writer, in: values)
        return worker
    }

    /// More than any worker lives to write.
    private static let endless = 1_000_000

    /// - Returns: How many of the worker's messages came before.
    private func storm(_ worker: WorkerProcess, writes: Int) async throws -> Int {
        let before = try worker.messages().count
        let first = record.nextNumber
        try worker.send("storm \(record.writer) \(first) \(first + writes - 1)")
        return before
    }

    private mutating func take(_ worker: WorkerProcess, _ taken: inout Int) throws {
        let messages = try worker.messages()
        for message in messages[taken...] { record.add(message) }
        taken = messages.count
    }

    private mutating func pause(milliseconds: Int) async throws {
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...milliseconds, using: &random)))
    }
}
