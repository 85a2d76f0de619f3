// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity
internal import UbiquityCore
internal import UbiquityTestWorker

extension EndToEndTests {
    /// An app that keeps a counter in its preferences, and is killed while it counts.
    @Suite struct MirrorKilledTests {
        private static let lives = 20

        @Test func `no step of a mirrored counter is lost or made twice by an app that is killed`()
            async throws
        {
            let seed = UInt64.random(in: 0 ... .max)
            var random = RandomSource(seed: seed)
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.signIn("a", isFirst: true)
                let b = try Device(home: await server.signIn("b"))
                defer { b.close() }
                let (attempted, acknowledged) = try await Self.live(
                    Self.lives, stage, home, steps: 0...6, using: &random)
                #expect(acknowledged > Self.lives, "seed \(seed)")
                #expect(attempted > acknowledged, "no kill came in the middle: seed \(seed)")

                let count = try await Self.count(stage, home, seenBy: b)
                #expect((acknowledged...attempted).contains(count), "seed \(seed)")
            }
        }

        @Test func `no step is lost by an app that is killed before its first download`()
            async throws
        {
            let seed = UInt64.random(in: 0 ... .max)
            var random = RandomSource(seed: seed)
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.signIn("a", isFirst: true)
                let b = try Device(home: await server.signIn("b"))
                defer { b.close() }
                try await server.stop()
                let (attempted, acknowledged) = try await Self.live(
                    Self.lives, stage, home, steps: 1...2, using: &random)
                #expect(acknowledged >= Self.lives, "seed \(seed)")
                try await server.start()
                let count = try await Self.count(stage, home, seenBy: b)
                #expect((acknowledged...attempted).contains(count), "seed \(seed)")
            }
        }

        /// The number that another device gets.
        private static func count(
            _ stage: Stage, _ home: String, seenBy other: Device
        ) async throws -> Int {
            let sync = ["sync", "--home", home, "--store", Device.identifier]
            // The first download, if no life was long enough for it.
            try await stage.succeed(sync)
            // What was lost between the preferences and the store is said again at a start.
            let last = try await WorkerProcess.ready(stage, home: home, options: ["--count"])
            try await last.end()
            try await stage.succeed(sync)
            try await other.store.synchronizeNow()
            return Int(other.store.longLong(forKey: CountingApp.key))
        }

        /// - Returns: The steps of all lives together.
        private static func live(
            _ lives: Int, _ stage: Stage, _ home: String, steps: ClosedRange<Int>,
            using random: inout RandomSource
        ) async throws -> (attempted: Int, acknowledged: Int) {
            var (attempted, acknowledged) = (0, 0)
            for _ in 0..<lives {
                let messages = try await live(
                    stage, home, steps: .random(in: steps, using: &random),
                    pause: .random(in: 0...8, using: &random))
                attempted += messages.count { $0 == .attempting }
                acknowledged += messages.count { $0 == .acknowledged }
            }
            return (attempted, acknowledged)
        }

        /// Is asked for some steps and one more, in the middle of which it is killed, as a rule.
        private static func live(
            _ stage: Stage, _ home: String, steps: Int, pause: Int
        ) async throws -> [WorkerMessage] {
            let worker = try await WorkerProcess.ready(stage, home: home, options: ["--count"])
            for _ in 0..<steps { try await worker.step() }
            try worker.send("")
            try await Task.sleep(for: .milliseconds(pause))
            try await worker.kill()
            return try worker.messages()
        }
    }
}

extension WorkerProcess {
    fileprivate func step() async throws {
        let before = try messages().count
        try send("")
        try await until("a step") {
            try mustRun()
            return try messages().count == before + 2
        }
    }
}
