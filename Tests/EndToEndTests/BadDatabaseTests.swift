// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing

extension EndToEndTests {
    /// A server that is given a database which it cannot use says why, and changes nothing in it.
    @Suite(.enabled(if: PostgresServer.isInstalled, "PostgreSQL 15 is not installed"))
    struct BadDatabaseTests {
        private func serve(_ stage: Stage, _ url: String, _ options: String...) async throws
            -> ProgramRun
        {
            try await stage.run(
                ["serve", "--port", "0", "--log-level", "critical"] + options,
                environment: ["UBIQUITY_DATABASE": url])
        }

        @Test(arguments: [
            ("postgresql://%zz", 64, "cannot be read"),
            ("postgresql://a:secret@127.0.0.1:1/x", 69, "cannot be reached"),
            ("postgresql://a:secret@nowhere.invalid/x", 69, "cannot be reached"),
        ])
        func `an address that leads nowhere is refused, and its password is not told`(
            _ url: String, _ status: Int, _ word: String
        ) async throws {
            try await onStage { stage in
                let run = try await serve(stage, url)
                complains(run, status, word)
                #expect(!run.errors.contains("secret"))
            }
        }

        @Test func `no password, database, rights or connections: each is refused and named`()
            async throws
        {
            let server = try PostgresServer.started()
            try server.query("CREATE ROLE guest LOGIN PASSWORD 'guest'")
            try server.query("CREATE DATABASE other")
            try await onStage { stage in
                let wrong = server.url().replacing("ubiquity:", with: "ubiquity:x")
                complains(try await serve(stage, wrong), 77, "password")
                complains(try await serve(stage, server.url("missing")), 66, "createdb")
                let guest = "postgresql://guest:guest@127.0.0.1:\(server.port)/other"
                complains(try await serve(stage, guest), 77, "does not permit")
                #expect(try schemas(server, "other").isEmpty)
                try server.query("ALTER ROLE guest CONNECTION LIMIT 0")
                complains(try await serve(stage, guest), 69, "no connection left")
            }
        }

        @Test func `a standby alone is refused, and its primary beside it is found`() async throws {
            let primary = try PostgresServer.started()
            let standby = try primary.newStandby()
            try await onStage { stage in
                complains(try await serve(stage, standby.url()), 69, "read-only")
                let both = PostgresServer.url(ports: [standby.port, primary.port], "postgres")
                let node = try await ServerProcess.started(stage, database: both)
                try await node.stop()
            }
        }

        @Test(arguments: [
            ("CREATE SCHEMA ubiquity; CREATE TABLE ubiquity.theirs (a int)", "another program"),
            ("UPDATE ubiquity.meta SET version = 99, compatible = 99", "newer version"),
        ])
        func `a schema that is not this program's is refused by every command, and left as it is`(
            _ change: String, _ word: String
        ) async throws {
            let server = try PostgresServer.started()
            try await onStage { stage in
                let place = ["UBIQUITY_DATABASE": server.url()]
                if change.hasPrefix("UPDATE") {
                    try await stage.succeed(["database", "migrate"], environment: place)
                }
                try server.query(change)
                let before = try schemas(server)
                #expect(!before.isEmpty)
                complains(try await serve(stage, server.url()), 74, word)
                for command in [["database", "migrate"], ["database", "credential"]] {
                    complains(try await stage.run(command, environment: place), 74, word)
                }
                #expect(try schemas(server) == before)
            }
        }

        @Test func `a server with too few connections is refused before anything is made`()
            async throws
        {
            let server = try PostgresServer.started(settings: ["max_connections": "10"])
            try await onStage { stage in
                complains(try await serve(stage, server.url()), 69, "max_connections")
                let node = ServerProcess(
                    stage, database: server.url(), options: ["--database-connections", "4"])
                try await node.start()
                complains(
                    try await serve(stage, server.url(), "--database-connections", "4"), 69,
                    "--database-connections")
                // An ordinary role counts the connections of others, too.
                try server.query("CREATE ROLE guest LOGIN PASSWORD 'guest'")
                try server.query("CREATE DATABASE other OWNER guest")
                let guest = "postgresql://guest:guest@127.0.0.1:\(server.port)/other"
                complains(
                    try await serve(stage, guest, "--database-connections", "4"), 69,
                    "--database-connections")
                #expect(try schemas(server, "other").isEmpty)
                try await node.stop()
            }
        }

        @Test func `a node without its synchronous standby says so, until there is one`()
            async throws
        {
            let primary = try PostgresServer.started()
            try await onStage { stage in
                let node = ServerProcess(
                    stage, database: primary.url(), options: ["--require-synchronous-standby"])
                try await node.start()
                func isReady() async throws -> Bool {
                    try await RawAnswer.to("GET", node.url + "/health/ready").status == 200
                }
                try await until("the missing standby") { try await !isReady() }
                try primary.set(["synchronous_standby_names": "*"])
                let standby = try primary.newStandby()
                primary.reload()
                try await until("the standby") { try await isReady() }
                standby.kill()
                try await until("the end of the standby") { try await !isReady() }
                try await node.kill()
            }
        }

        private static let wrongClock = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"

        @Test(.enabled(if: FileManager.default.fileExists(atPath: wrongClock)))
        func `a node with a wrong clock says so, and is not ready`() async throws {
            let server = try PostgresServer.started()
            try await onStage { stage in
                func node(_ name: String, _ error: String) -> ServerProcess {
                    ServerProcess(
                        stage, data: stage.path(name), database: server.url(),
                        environment: [
                            "LD_PRELOAD": Self.wrongClock, "FAKETIME": error,
                            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                        ])
                }
                let (late, right) = (node("late", "-5s"), node("right", "-0.2"))
                for node in [late, right] { try await node.start() }
                func status(_ node: ServerProcess) async throws -> Int {
                    try await RawAnswer.to("GET", node.url + "/health/ready").status
                }
                try await until("the right clock") { try await status(right) == 200 }
                try await until("the wrong clock") { late.errors.contains("clock") }
                #expect(try await status(late) == 503)
                for node in [late, right] { try await node.stop() }
            }
        }

        @Test func `nothing is left of a database whose process was killed`() async throws {
            try await onStage { stage in
                let parent = stage.path("tmp")
                let (permissions, manager) = (
                    [FileAttributeKey.posixPermissions: 0o755], FileManager.default
                )
                try manager.createDirectory(
                    atPath: parent, withIntermediateDirectories: true, attributes: permissions)
                try manager.setAttributes(permissions, ofItemAtPath: stage.folder)
                func folders() throws -> [String] {
                    try manager.contentsOfDirectory(atPath: parent)
                }
                let torture = try stage.start(
                    ["--quick", "--database", "postgresql", "--folder", stage.path("torture")],
                    program: ProgramFile("UbiquityTorture"), environment: ["TMPDIR": parent])
                try await until("the start of a database") {
                    try folders().contains {
                        manager.fileExists(atPath: "\(parent)/\($0)/data/postmaster.pid")
                    }
                }
                torture.kill()
                try await torture.exit()
                try await until("the end of the database") { try folders().isEmpty }
            }
        }

        /// All columns of the program's schema, and its version.
        private func schemas(_ server: PostgresServer, _ database: String = "postgres") throws
            -> String
        {
            try server.query(
                """
                SELECT table_name, column_name FROM information_schema.columns
                WHERE table_schema = 'ubiquity' ORDER BY 1, 2
                """, in: database)
        }
    }
}
