// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing

extension EndToEndTests {
    /// Root in the data folder of a service's user, who would like to be root. Only root can show it.
    @Suite(.enabled(if: geteuid() == 0)) struct FolderOwnerTests {
        private static let user: UInt32 = 1

        private func owner(_ path: String) throws -> UInt32? {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            return (attributes[.ownerAccountID] as? NSNumber)?.uint32Value
        }

        /// A data folder with one account, and a backup of it.
        private func prepared(_ stage: Stage) async throws -> (
            server: ServerProcess, backup: String
        ) {
            // The service's user comes through it to the data folder.
            chmod(stage.folder, 0o755)
            let server = try await ServerProcess.started(stage)
            _ = try await server.newCode(isFirst: true)
            let backup = stage.path("backup")
            try await stage.succeed("backup", "--data", server.data, "--output", backup)
            return (server, backup)
        }

        /// Gives the folder, and all that is in it, to the service's user.
        private func give(_ data: String) throws {
            chown(data, Self.user, Self.user)
            for name in try FileManager.default.subpathsOfDirectory(atPath: data) {
                chown(data + "/" + name, Self.user, Self.user)
            }
        }

        @Test func `root opens no file in a folder of the service's user, and says whose it is`()
            async throws
        {
            try await onStage { stage in
                let (server, backup) = try await prepared(stage)
                try await server.stop()
                let data = server.data
                try give(data)
                let files = try FileManager.default.subpathsOfDirectory(atPath: data).sorted()
                for arguments in [
                    ["restore", backup, "--data", data, "--replace"],
                    ["backup", "--data", data, "--output", stage.path("b")],
                    ["doctor", "--data", data], ["serve", "--port", "0", "--data", data],
                    [
                        "database", "copy", "--data", data, "--database",
                        "postgresql://127.0.0.1:1/none",
                    ],
                ] {
                    let run = try await stage.run(arguments)
                    #expect(
                        run.status == 77 && run.errors.contains("run the command with `sudo -u "))
                    #expect(run.output.isEmpty)
                }
                let left = try FileManager.default.subpathsOfDirectory(atPath: data).sorted()
                #expect(left == files && !FileManager.default.fileExists(atPath: stage.path("b")))
            }
        }

        @Test func `root speaks to the server of the service's user`() async throws {
            try await onStage { stage in
                let (server, _) = try await prepared(stage)
                try give(server.data)
                try await stage.succeed("account", "create", "eve", "--data", server.data)
                let list = try await stage.succeed("account", "list", "--data", server.data)
                #expect(list.contains("ada") && list.contains("eve"))
            }
        }

        #if os(Linux)
        /// Whether root may have mounts of its own, which not every container allows.
        private static func hasMounts() async throws -> Bool {
            try await Stage("mounts").run(
                ["unshare", "--mount", "true"], program: ProgramFile(path: "/usr/bin/env")
            ).status == 0
        }

        @Test(.enabled { try await hasMounts() })
        func `accounts' names are kept for the user who called sudo, with that user's rights`()
            async throws
        {
            try await onStage { stage in
                let (server, _) = try await prepared(stage)
                let data = server.data
                let (person, home) = (UInt32(1_234), stage.path("person"))
                mkdir(home, 0o755)
                chown(home, person, person)
                let users = stage.path("passwd")
                let line = "person:x:\(person):\(person)::\(home):/bin/sh\n"
                try (String(contentsOfFile: "/etc/passwd", encoding: .utf8) + line)
                    .write(toFile: users, atomically: true, encoding: .utf8)
                func account(_ words: String...) async throws {
                    let script = "mount --bind \"$0\" /etc/passwd; exec \"$@\""
                    let command = [try ProgramFile.ubiquity.path(), "account"] + words
                    let child = try stage.start(
                        ["--mount", "sh", "-c", script, users] + command + ["--data", data],
                        program: ProgramFile(path: "/usr/bin/unshare"),
                        environment: ["SUDO_UID": "\(person)"])
                    #expect(try await child.exit() == 0, "\(child.errors)")
                }
                let names = home + "/.cache/ubiquity/names.json"
                try await account("list")
                try await account("create", "eve")
                #expect(try owner(names) == person)
                #expect(
                    try String(contentsOfFile: names, encoding: .utf8)
                        == #"{"names":["eve","ada"]}"#)
                // Links of that user's lead root nowhere.
                let (secret, folder) = (stage.path("secret"), stage.path("root"))
                try Data("root's".utf8).write(to: URL(fileURLWithPath: secret))
                mkdir(folder, 0o700)
                unlink(names)
                symlink(secret, names)
                try await account("list")
                #expect(try String(contentsOfFile: secret, encoding: .utf8) == "root's")
                try FileManager.default.removeItem(atPath: home + "/.cache")
                symlink(folder, home + "/.cache")
                try await account("list")
                #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
            }
        }
        #endif

        @Test func `a path that another user can redirect is refused`() async throws {
            try await onStage { stage in
                let (server, _) = try await prepared(stage)
                let (place, link) = (stage.path("place"), stage.path("place/link"))
                mkdir(place, 0o755)
                symlink(server.data, link)
                chown(place, Self.user, Self.user)
                let run = try await stage.run("backup", "--data", link, "--output", stage.path("b"))
                #expect(run.status == 77 && run.errors.contains("a folder on its path"), "\(run)")
            }
        }
    }
}
