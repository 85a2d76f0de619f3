// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity

extension EndToEndTests {
    /// Servers and commands on a PostgreSQL database, which they find in the environment.
    @Suite(.enabled(if: PostgresServer.isInstalled)) struct DatabaseCommandTests {
        private func json(_ text: String) throws -> [String: Any] {
            try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] ?? [:]
        }

        @Test func `an operator's commands work while several servers run on the database`()
            async throws
        {
            let database = try PostgresServer.started()
            let place = ["UBIQUITY_DATABASE": database.url()]
            try await onStage { stage in
                let early = try await stage.run(["account", "list"], environment: place)
                #expect(early.status == 64)
                #expect(early.errors.contains("`ubiquity database credential`"))
                let nodes = (1...2).map { _ in ServerProcess(stage, database: database.url()) }
                for node in nodes { try await node.start() }
                let a = try Device(home: await nodes[0].newHome("a", isFirst: true))
                let b = try Device(home: await nodes[1].newHome("b"))
                defer {
                    a.close()
                    b.close()
                }
                a.store.set("from the first", forKey: "one")
                b.store.set("from the second", forKey: "two")
                try await agreement(a, b) { $0.count == 2 }
                try await until("the connections") { a.isConnected && b.isConnected }
                let operation = nodes[1].operatorOptions
                let code = try await stage.succeed(["account", "code", "ada"] + operation)
                #expect(code.contains("sign-in --server \(nodes[1].url) --code"))
                let audit = try await stage.succeed(["audit", "--json"] + operation)
                #expect(audit.contains("device-signed-in"))
                let doctor = try await stage.run(
                    ["doctor", "--database", "-"], environment: place)
                #expect(doctor.output.contains("format 1"))
                let check = try await stage.succeed(
                    ["database", "check", "--json"], environment: place)
                #expect(try json(check)["unreadable"] as? Int == 0)
                try await stage.succeed(
                    ["device", "revoke", "b", "--account", "ada"] + operation)
                try await until("the end of the connection") { !b.isConnected }
                a.store.set("still there", forKey: "one")
                try await until("its arrival") { a.isSettled }
                let backup = try await stage.run(
                    ["backup", "--output", stage.path("copy")], environment: place)
                #expect(backup.status == 64 && backup.errors.contains("pg_dump"))
                for node in nodes { try await node.stop() }
            }
        }

        @Test func `devices go on when their server's data moves to a database and back`()
            async throws
        {
            let database = try PostgresServer.started()
            try await withTwoDevices { pair in
                let (stage, server, a, b) = (pair.stage, pair.server, pair.a, pair.b)
                a.store.set("kept", forKey: "kept")
                a.store.set("old", forKey: "changed")
                try await agreement(a, b) { $0.count == 2 }
                let copying = ["database", "copy", "--data"]
                let place = ["UBIQUITY_DATABASE": database.url()]
                let early = try await stage.run(copying + [server.data], environment: place)
                #expect(early.status == 73 && early.errors.contains("stop it first"))
                try await server.stop()
                a.store.set("written meanwhile", forKey: "changed")
                let copied = try json(
                    try await stage.succeed(
                        copying + [server.data, "--json"], environment: place))
                #expect(copied["accounts"] as? Int == 1 && copied["devices"] as? Int == 2)

                let node = ServerProcess(stage, port: server.port, database: database.url())
                try await node.start()
                let moved = ["kept": "kept", "changed": "written meanwhile"]
                try await until("the news on both") {
                    [a, b].allSatisfy { $0.texts == moved && $0.isSettled }
                }
                b.store.removeObject(forKey: "kept")
                try await agreement(a, b) { $0.count == 1 }
                try await node.stop()

                let folder = stage.path("back")
                try await stage.succeed(copying + [folder, "--back"], environment: place)
                let last = ServerProcess(stage, port: server.port, data: folder)
                try await last.start()
                a.store.set("new", forKey: "new")
                let all = ["changed": "written meanwhile", "new": "new"]
                try await until("the news on both again") {
                    [a, b].allSatisfy { $0.texts == all && $0.isSettled }
                }
                let again = try await stage.run(copying + [folder, "--back"], environment: place)
                #expect(again.status == 73)
            }
        }

        @Test func `the demo's device goes on when its server is killed`() async throws {
            try await onStage { stage in
                let demo = try await stage.run(
                    ["--database", "postgresql"], program: ProgramFile("Demo"))
                #expect(demo.status == 0, "\(demo.output)\(demo.errors)")
                #expect(demo.output.contains("A's server is killed"))
            }
        }
    }
}
