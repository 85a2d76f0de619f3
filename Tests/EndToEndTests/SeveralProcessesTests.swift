// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import TortureLanguage
internal import Ubiquity
internal import UbiquityTestWorker

extension EndToEndTests {
    /// An app, its helper and the command, of one person, on one machine, on one store.
    @Suite struct SeveralProcessesTests {
        /// In milliseconds, from the call that writes to the observer that has read the value. Half
        /// of the interval at which a process checks without a signal.
        private static let delayMax = 500.0

        @Test func `every process is told of another's write at once, and never of its own`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                let app = try await WorkerProcess.ready(stage, home: home)
                let helper = try await WorkerProcess.ready(stage, home: home)
                let watch = try await Self.watch(home, stage)
                var (toOther, toCommand) = (Delays(), Delays())
                for round in 1...100 {
                    let isApp = round.isMultiple(of: 2)
                    let (writer, other) = isApp ? (app, helper) : (helper, app)
                    let (key, text) = (isApp ? "app" : "helper", "round \(round)")
                    let start = try await writer.set(text, forKey: key)
                    toOther.add(from: start, to: try await other.arrival(of: text, forKey: key))
                    try await until("the command's line") {
                        watch.output.contains("\"\(text)\"")
                    }
                    toCommand.add(from: start, to: MonotonicTime.now)
                }
                #expect(toOther.median <= Self.delayMax, "\(toOther)")
                #expect(toCommand.median <= Self.delayMax, "\(toCommand)")
                watch.signal(SIGTERM)
                #expect(try await watch.exit() == 0)
                for (worker, others) in [(app, "helper"), (helper, "app")] {
                    let notices = try worker.notices()
                    #expect(notices.allSatisfy { $0.reason == 0 && $0.keys == [others] })
                    #expect(notices.count == 50)
                }
            }
        }

        @Test func `what the command writes, and removes, every process is told at once`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                let workers = [
                    try await WorkerProcess.ready(stage, home: home),
                    try await WorkerProcess.ready(stage, home: home),
                ]
                var delays = Delays()
                for round in 1...10 {
                    let text = "round \(round)"
                    let set = try await stage.run(
                        Self.command("set", home) + ["key", "--string", text, "--local"])
                    // When exactly it wrote, it does not tell; when it has ended, it has.
                    let end = MonotonicTime.now
                    #expect(set.status == 0, "\(set.errors)")
                    for worker in workers {
                        delays.add(from: end, to: try await worker.arrival(of: text, forKey: "key"))
                    }
                }
                #expect(delays.median <= Self.delayMax, "\(delays)")
                try await stage.succeed(
                    "remove", "key", "--home", home, "--store", Device.identifier)
                for worker in workers { _ = try await worker.arrival(of: nil, forKey: "key") }
            }
        }

        @Test func `a process that opens the store while another one writes misses nothing`()
            async throws
        {
            try await onStage { stage in
                // Nobody is signed in: no answer of a server wakes the newcomer once more.
                let home = stage.path("home")
                let app = try await WorkerProcess.ready(stage, home: home)
                var pause = 10_000
                for round in 1...60 {
                    let newcomer = try WorkerProcess(stage, home: home)
                    try await Task.sleep(for: .microseconds(pause))
                    _ = try await app.set("\(round)", forKey: "key")
                    try await newcomer.isReady()
                    try await until("round \(round)'s value in the newcomer") {
                        try await newcomer.ask("get key") == .value("\(round)")
                    }
                    // Aims at the moment when the store is read and changes are not heard yet.
                    pause += try newcomer.notices().isEmpty ? 500 : -500
                    try await newcomer.end()
                }
            }
        }

        @Test func `commands do not wait for another process that holds the connection`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                let b = try Device(home: await server.newHome("b"))
                defer { b.close() }
                let watch = try await Self.watch(home, stage)
                defer { watch.kill() }
                for number in Int64(1)...3 {
                    b.store.set(number, forKey: "number")
                    try await b.store.synchronizeNow()
                    let run = try await stage.run(Self.command("get", home) + ["number"])
                    #expect(run.output == "\(number)\n")
                    #expect(run.errors.isEmpty)
                }
            }
        }

        private static func command(_ name: String, _ home: String) -> [String] {
            [name, "--home", home, "--store", Device.identifier]
        }

        #if os(Linux)
        @Test func `one process is connected at a time, and another when that is killed or ends`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                let b = try Device(home: await server.newHome("b"))
                defer { b.close() }
                var workers: [WorkerProcess] = []
                for _ in 1...4 {
                    workers.append(try await WorkerProcess.ready(stage, home: home))
                }
                let counter = ConnectionCounter(
                    port: server.port, processes: workers.map(\.processID))
                let counting = Task { try await counter.run() }
                for (round, isKilled) in [true, false, true].enumerated() {
                    let leader = try await Self.connectedOne(of: workers, counter)
                    try await Self.expectArrival("before \(round)", from: b, at: workers)
                    workers.removeAll { $0 === leader }
                    if isKilled {
                        try await leader.kill()
                    } else {
                        counter.leaveOut(leader.processID)
                        try await leader.end()
                    }
                    try await Self.expectArrival("after \(round)", from: b, at: workers)
                }
                _ = try await Self.connectedOne(of: workers, counter)
                counting.cancel()
                try await counting.value
                #expect(counter.crowds.isEmpty)
            }
        }

        @Test func `one that was stopped is named to those that wait for it, and they go on`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                let b = try Device(home: await server.newHome("b"))
                defer { b.close() }
                let leader = try await WorkerProcess.ready(stage, home: home)
                try await until("its connection") { try await leader.status().isConnected }
                let other = try await WorkerProcess.ready(stage, home: home)
                #expect(try await other.ask("sync") == .synced(failure: nil))
                try leader.send(signal: SIGSTOP)
                _ = try await other.set("meanwhile", forKey: "key")
                try other.send("sync")
                let command = try await stage.run(
                    "sync", "--home", home, "--store", Device.identifier)
                #expect(command.status == 69)
                let holder = "(\(leader.processID))"
                #expect(command.errors.contains(holder), "\(command.errors)")
                let hasty = try await stage.run(
                    "sync", "--home", home, "--store", Device.identifier, "--timeout", "1")
                #expect(hasty.errors.contains(holder), "\(hasty.errors)")
                let status = try await stage.run(
                    Self.command("status", home) + ["--json", "--timeout", "1"])
                #expect(status.output.contains(holder), "\(status.output)")
                try await until("the end of the round trip") {
                    guard case .synced(let failure) = try other.messages().last else {
                        return false
                    }
                    #expect(failure?.contains(holder) == true, "\(failure ?? "")")
                    return true
                }
                #expect(try await other.ask("synchronize") == .synchronized(true))
                try leader.send(signal: SIGCONT)
                try await until("what was written meanwhile") { b.texts["key"] == "meanwhile" }
                #expect(try await other.ask("sync") == .synced(failure: nil))
            }
        }

        /// - Returns: The only one, which also says that it is.
        private static func connectedOne(
            of workers: [WorkerProcess], _ counter: ConnectionCounter
        ) async throws -> WorkerProcess {
            try await until("a connection") { try !counter.holders().isEmpty }
            let holders = try counter.holders()
            var leaders: [WorkerProcess] = []
            for worker in workers where try await worker.status().isLeading {
                leaders.append(worker)
            }
            #expect(holders == Set(leaders.map(\.processID)))
            return try #require(leaders.first)
        }

        private static func expectArrival(
            _ text: String, from b: Device, at workers: [WorkerProcess]
        ) async throws {
            b.store.set(text, forKey: "remote")
            for worker in workers { _ = try await worker.arrival(of: text, forKey: "remote") }
        }
        #endif

        /// - Returns: When it has said that it watches.
        private static func watch(_ home: String, _ stage: Stage) async throws -> ChildProcess {
            let watch = try stage.start(command("watch", home) + ["--json"])
            try await until("the start of the watch") {
                if !watch.isRunning { throw Trouble("the watch ended: \(watch.errors)") }
                return watch.errors.contains("Watching")
            }
            #expect(!watch.errors.contains("Not connected"))
            return watch
        }
    }
}
