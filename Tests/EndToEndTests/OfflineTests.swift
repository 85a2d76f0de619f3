// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Testing
internal import Ubiquity
internal import UbiquityCore

extension EndToEndTests {
    @Suite struct OfflineTests {
        @Test func `what two devices write and delete without a server is on both afterwards`()
            async throws
        {
            try await onStage { stage in
                var server = try await ServerProcess.started(stage)
                let a = try Device(home: await server.signIn("a", isFirst: true))
                let b = try Device(home: await server.signIn("b"))
                defer {
                    a.close()
                    b.close()
                }
                for key in ["both", "deleted by a", "deleted by b"] {
                    a.store.set("old", forKey: key)
                }
                try await agreement(a, b) { $0.count == 3 }
                try await server.stop()
                a.store.set("from a", forKey: "a")
                a.store.set("earlier", forKey: "both")
                a.store.removeObject(forKey: "deleted by a")
                #expect(a.store.synchronize())
                try await Task.sleep(for: .milliseconds(5))
                b.store.set("from b", forKey: "b")
                b.store.set("later", forKey: "both")
                b.store.removeObject(forKey: "deleted by b")
                #expect(b.store.synchronize())
                try await server.start()
                let all = ["a": "from a", "b": "from b", "both": "later"]
                try await until("their agreement") {
                    [a, b].allSatisfy {
                        $0.store.dictionaryRepresentation as? [String: String] == all
                            && $0.isSettled
                    }
                }
            }
        }

        @Test func `the level story ends at 13 on both`() async throws {
            try await onStage { stage in
                var server = try await ServerProcess.started(stage)
                let a = try Device(home: await server.signIn("a", isFirst: true))
                let homeB = try await server.signIn("b")
                defer { a.close() }
                var b = try Device(home: homeB)
                a.store.set(Int64(12), forKey: "level")
                try await agreement(a, b) { !$0.isEmpty }
                b.close()
                a.store.set(Int64(13), forKey: "level")
                try await a.store.synchronizeNow()
                try await server.kill()
                try await Task.sleep(for: .milliseconds(5))
                b = try Device(home: homeB)
                b.store.set(Int64(1), forKey: "level")
                #expect(b.store.synchronize())
                try await server.start()
                try await until("that a is told of level 1") { a.integer("level") == 1 }
                a.store.set(Int64(13), forKey: "level")
                let last = b
                defer { last.close() }
                try await agreement(a, last) { _ in last.integer("level") == 13 }
            }
        }

        @Test func `a newly installed device takes the server's level`() async throws {
            try await levelOfNewcomer(.serverWins, expected: 13)
        }

        @Test func `where timestamps decide, a newly installed device's later level wins`()
            async throws
        {
            try await levelOfNewcomer(.timestamps, expected: 1)
        }

        private func levelOfNewcomer(
            _ firstSync: UbiquityConfiguration.FirstSync, expected: Int64
        ) async throws {
            try await onStage { stage in
                var server = try await ServerProcess.started(stage)
                let a = try Device(home: await server.signIn("a", isFirst: true))
                let homeB = try await server.signIn("b")
                defer { a.close() }
                a.store.set(Int64(13), forKey: "level")
                try await a.store.synchronizeNow()
                try await server.stop()
                try await Task.sleep(for: .milliseconds(5))
                let b = try Device(home: homeB, firstSync: firstSync)
                defer { b.close() }
                b.store.set(Int64(1), forKey: "level")
                b.store.set(Int64(2), forKey: "only on b")
                try await server.start()
                try await agreement(a, b) { $0.count == 2 }
                #expect(a.integer("level") == expected)
                #expect(a.integer("only on b") == 2)
            }
        }

        @Test func `what a device saved before it was killed is there, and is sent later`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.signIn("a", isFirst: true)
                for number in 1...5 { try await killAfterSaving(number, home, stage) }
                let a = try Device(home: home)
                defer { a.close() }
                #expect(a.store.values.count == 5)
                let b = try Device(home: await server.signIn("b"))
                defer { b.close() }
                try await agreement(a, b) { $0.count == 5 }
            }
        }

        /// The command prints its result once `synchronize()` returned true, and is killed then.
        private func killAfterSaving(_ number: Int, _ home: String, _ stage: Stage) async throws {
            let child = try stage.start(
                "set", "key \(number)", "--integer", "\(number)", "--home", home, "--store",
                Device.identifier, "--local", "--json")
            try await until("the saving of \(number)") { child.output.contains("\n") }
            child.kill()
            try await child.exit()
        }
    }
}
