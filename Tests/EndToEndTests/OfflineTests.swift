// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import ProcessHarness
internal import Testing
internal import Ubiquity

extension EndToEndTests {
    @Suite struct OfflineTests {
        @Test func `what two devices write and delete without a server is on both afterwards`()
            async throws
        {
            let began = ContinuousClock.now
            try await withTwoDevices { pair in
                let (a, b) = (pair.a, pair.b)
                for key in ["both", "deleted by a", "deleted by b"] {
                    a.store.set("old", forKey: key)
                }
                try await agreement(a, b) { $0.count == 3 }
                try await pair.server.stop()
                a.store.set("from a", forKey: "a")
                a.store.set("earlier", forKey: "both")
                a.store.removeObject(forKey: "deleted by a")
                #expect(a.store.synchronize())
                try await outlastClockErrors(since: began)
                b.store.set("from b", forKey: "b")
                b.store.set("later", forKey: "both")
                b.store.removeObject(forKey: "deleted by b")
                #expect(b.store.synchronize())
                try await pair.server.start()
                let all = ["a": "from a", "b": "from b", "both": "later"]
                try await until("their agreement") {
                    [a, b].allSatisfy { $0.texts == all && $0.isSettled }
                }
            }
        }

        @Test func `a value that waits already is not said to be sent when it is written again`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("phone", isFirst: true)
                let options = ["--home", home, "--store", Device.identifier, "--json"]
                try await stage.run(["sync"] + options).expectSuccess()
                try await server.stop()
                for _ in 0..<2 {
                    let run = try await stage.run(["set", "k", "1"] + options)
                    #expect(run.output.contains("\"sent\":false"), "\(run)")
                }
                try await server.start()
                let run = try await stage.run(["set", "k", "1", "--timeout", "60"] + options)
                #expect(run.output.contains("\"sent\":true"), "\(run)")
                // What the next command sees has been agreed.
                let status = try await stage.run(["status", "--local"] + options)
                #expect(status.output.contains("\"pendingKeys\":0"), "\(status)")
            }
        }
    }
}
