// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness
import Testing

extension EndToEndTests {
    /// Files that programs of version 0.9 left behind, in `Tests/Formats/1`, made by
    /// `scripts/format-files`: every later one opens them.
    @Suite struct FormatTests {
        private static let store = ["--store", "TEAM.example.formats"]
        private static let files = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Formats/1").path

        /// A copy of a folder, which only its owner may write to, as it was.
        private func copy(_ name: String, to stage: Stage) throws -> String {
            let path = stage.path(name)
            try FileManager.default.copyItem(atPath: "\(Self.files)/\(name)", toPath: path)
            for file in try FileManager.default.subpathsOfDirectory(atPath: path) + [""] {
                let file = "\(path)/\(file)"
                let isFolder = (try? FileManager.default.contentsOfDirectory(atPath: file)) != nil
                try FileManager.default.setAttributes(
                    [.posixPermissions: isFolder ? 0o700 : 0o600], ofItemAtPath: file)
            }
            return path
        }

        /// A copy of a device, whose server is at another address now.
        private func device(_ name: String, of server: ServerProcess) throws -> String {
            let home = try copy(name, to: server.stage)
            let file = "\(home)/account.json"
            let text = try String(contentsOfFile: file, encoding: .utf8)
            try text.replacing(/http:\/\/127\.0\.0\.1:\d+/, with: server.url)
                .write(toFile: file, atomically: false, encoding: .utf8)
            return home
        }

        private func expected(_ name: String) throws -> String {
            try String(contentsOfFile: "\(Self.files)/\(name).json", encoding: .utf8)
        }

        private func values(_ home: String, _ stage: Stage) async throws -> String {
            try await stage.succeed(["export", "--exact", "--home", home] + Self.store)
        }

        private func get(_ key: String, _ home: String, _ stage: Stage) async throws -> String {
            try await stage.succeed(["get", key, "--home", home] + Self.store)
        }

        /// A new device. In the sealed account, it gets the keys by the recovery key.
        private func newDevice(
            of account: String, at server: ServerProcess, recovery: String = "recovery"
        ) async throws -> String {
            let home = try await server.signIn("new-\(account)", account: account)
            if account == "bob" {
                let key = "\(Self.files)/\(recovery)"
                let input = Pipe()
                let child = try server.stage.start(
                    ["unlock", "--recovery", "--home", home], input: input)
                try input.fileHandleForWriting.write(
                    contentsOf: try Data(contentsOf: URL(fileURLWithPath: key)))
                try input.fileHandleForWriting.close()
                #expect(try await child.exit() == 0, "\(child.lastWords)")
            }
            return home
        }

        @Test func `a server and devices of version 1 go on, and send what they had not sent`()
            async throws
        {
            try await onStage { stage in
                let data = try copy("server", to: stage)
                let server = try await ServerProcess.started(stage, data: data)
                for (name, account) in [("swift", "ann"), ("sealed", "bob")] {
                    let new = try await newDevice(of: account, at: server)
                    #expect(try await values(new, stage) == expected(name))
                    let old = try device(name, of: server)
                    #expect(try await get("unsent \(name)", old, stage) == "x\n")
                    try await stage.succeed(["sync", "--home", old] + Self.store)
                    #expect(try await get("unsent \(name)", new, stage) == "x\n")
                    try await stage.succeed(["set", "theme", "new", "--home", new] + Self.store)
                    #expect(try await get("theme", old, stage) == "new\n")
                    let history = try await stage.succeed(
                        ["history", "theme", "--home", old] + Self.store)
                    #expect(history.contains(name == "swift" ? "light" : "sealed"), "\(history)")
                }
            }
        }

        @Test(.enabled(if: PostgresServer.isInstalled))
        func `a database of version 1 goes on`() async throws {
            let database = try PostgresServer.started()
            try database.query(
                String(contentsOfFile: "\(Self.files)/postgresql.sql", encoding: .utf8))
            try await onStage { stage in
                let server = ServerProcess(stage, database: database.url())
                try await server.start()
                for (name, account) in [("swift", "ann"), ("sealed", "bob")] {
                    let new = try await newDevice(
                        of: account, at: server, recovery: "postgresql.recovery")
                    #expect(try await values(new, stage) == expected(name))
                }
                try await server.stop()
            }
        }
    }
}
