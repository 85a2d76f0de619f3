// SPDX-License-Identifier: Apache-2.0

internal import ProcessHarness
internal import Testing
internal import UbiquityTestWorker

extension EndToEndTests {
    /// Apps that let their store go and make it again, while other processes come and go.
    @Suite struct ReopeningTests {
        @Test func `what was saved is there for the next process, whoever opened and closed`()
            async throws
        {
            try await onStage { stage in
                let home = stage.path("home")
                let app = try await WorkerProcess.ready(stage, home: home, options: ["--quiet"])
                var saved: [String: String] = [:]
                for round in 1...3 {
                    let keys = (1...4).map { "\(round).\($0)" }
                    #expect(try await app.ask("reopen \(keys[0]) text") == .ready)
                    #expect(try await app.ask("synchronize") == .synchronized(true))
                    let other = try await WorkerProcess.ready(stage, home: home)
                    try await other.end()
                    for key in keys.dropFirst() {
                        _ = try await app.set("text", forKey: key)
                        #expect(try await app.ask("synchronize") == .synchronized(true))
                    }
                    for key in keys { saved[key] = "text" }
                }
                try await app.kill()
                let reader = try await WorkerProcess.ready(stage, home: home)
                #expect(try await reader.values() == saved)
                try await reader.end()
            }
        }
    }
}
