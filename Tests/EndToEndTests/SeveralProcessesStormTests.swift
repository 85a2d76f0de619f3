// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity
internal import UbiquityTestWorker

extension EndToEndTests {
    /// Several processes on one store, which write as fast as they can and are killed.
    @Suite struct SeveralProcessesStormTests {
        @Test func `no acknowledged write is lost by processes that are killed again and again`()
            async throws
        {
            let seed = UInt64.random(in: 0 ... .max)
            try await onStage { stage in
                let server = try await ServerProcess.started(stage, options: Self.manyPushes)
                let home = try await server.newHome("a", isFirst: true)
                let b = try Device(home: await server.newHome("b"))
                defer { b.close() }
                // Before the first download the server would win.
                try await stage.succeed("sync", "--home", home, "--store", Device.identifier)
                try await b.store.synchronizeNow()

                let writingB = Task { await Self.write(on: b) }
                let ends = try await Self.storm(stage, home: home, seed: seed)
                writingB.cancel()
                let records = await ends.map(\.writer.record) + [writingB.value]

                #expect(records.map(\.refusals) == records.map { _ in 0 }, "seed \(seed)")
                let acknowledged = ends.reduce(0) { $0 + $1.writer.record.acknowledgedCount }
                #expect(acknowledged >= Self.writesMin, "seed \(seed)")
                #expect(ends.reduce(0) { $0 + $1.writer.kills } >= Self.killsMin, "seed \(seed)")
                let early = ends.flatMap(\.writer.complaints)
                #expect(early.isEmpty, "seed \(seed): \(early.prefix(20))")

                let values = try await Self.agreement(ends.map(\.worker), b)
                let complaints = StormVerdict(records).complaints(about: values)
                #expect(complaints.isEmpty, "seed \(seed): \(complaints.prefix(20))")
                let newcomer = try await WorkerProcess.ready(stage, home: home)
                #expect(try await newcomer.values() == values, "seed \(seed)")
                let c = try Device(home: await server.newHome("c"))
                defer { c.close() }
                try await c.store.synchronizeNow()
                #expect(c.texts == values, "seed \(seed)")
            }
        }

        private static let manyPushes = [
            "--push-burst", "1000000", "--pushes-per-second", "1000000",
        ]
        private static let writers = ["w1", "w2", "w3", "w4"]
        private static let writesMin = 3_000
        private static let killsMin = 12

        private struct End: Sendable {
            var writer: StormWriter
            /// Still running.
            var worker: WorkerProcess
        }

        private static func storm(
            _ stage: Stage, home: String, seed: UInt64
        ) async throws -> [End] {
            try await withThrowingTaskGroup(of: End.self) { group in
                for (number, name) in writers.enumerated() {
                    var writer = StormWriter(
                        name, stage, home: home, seed: seed &+ UInt64(number))
                    group.addTask {
                        let worker = try await writer.run(
                            acknowledged: writesMin / writers.count,
                            kills: killsMin / writers.count + 1)
                        return End(writer: writer, worker: worker)
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
        }

        /// The second device: contends for the same keys, from elsewhere, until it is cancelled.
        @concurrent private static func write(on b: Device) async -> StormRecord {
            var record = StormRecord(writer: "b")
            while !Task.isCancelled {
                let number = record.nextNumber
                record.attempt(number...number, at: MonotonicTime.now)
                do { try StormWrite(writer: "b", number: number).make(in: b.store) } catch {
                    Issue.record("The second device's write was refused: \(error)")
                }
                record.add(
                    b.store.synchronize()
                        ? .acknowledged(through: number) : .refused(through: number))
                try? await Task.sleep(for: .milliseconds(10))
            }
            return record
        }

        /// - Returns: What all have, with everything sent and received.
        private static func agreement(
            _ workers: [WorkerProcess], _ b: Device
        ) async throws -> [String: String] {
            for worker in workers {
                try await until("a worker's round trip") {
                    try await worker.ask("sync") == .synced(failure: nil)
                }
            }
            try await b.store.synchronizeNow()
            try await until("the agreement of all") {
                for worker in workers {
                    guard try await worker.values() == b.texts else { return false }
                }
                return true
            }
            return b.texts
        }
    }
}
