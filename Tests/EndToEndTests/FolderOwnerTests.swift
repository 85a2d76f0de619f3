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

        /// A user of the system for as long as the test runs, who has called a command with `sudo`.
        private func asPerson(
            _ stage: Stage, _ command: [String]
        ) async throws -> ProgramRun {
            let home = stage.path("person")
            if mkdir(home, 0o755) == 0 { chown(home, Self.person, Self.person) }
            let users = stage.path("passwd")
            let line = "person:x:\(Self.person):\(Self.person)::\(home):/bin/sh\n"
            try (String(contentsOfFile: "/etc/passwd", encoding: .utf8) + line)
                .write(toFile: users, atomically: true, encoding: .utf8)
            let script = "mount --bind \"$0\" /etc/passwd; exec \"$@\""
            return try await stage.run(
                ["--mount", "sh", "-c", script, users, try ProgramFile.ubiquity.path()] + command,
                program: ProgramFile(path: "/usr/bin/unshare"),
                environment: ["SUDO_UID": "\(Self.person)"])
        }

        private static let person: UInt32 = 1_234

        @Test(.enabled { try await hasMounts() })
        func `accounts' names are kept for the user who called sudo, with that user's rights`()
            async throws
        {
            try await onStage { stage in
                let (server, _) = try await prepared(stage)
                let (data, home) = (server.data, stage.path("person"))
                func account(_ words: String...) async throws {
                    let run = try await asPerson(stage, ["account"] + words + ["--data", data])
                    #expect(run.status == 0, "\(run.errors)")
                }
                let names = home + "/.cache/ubiquity/names.json"
                try await account("list")
                try await account("create", "eve")
                #expect(try owner(names) == Self.person)
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

        @Test(.enabled { try await hasMounts() })
        func `the device of the user who called sudo is signed in, if it can be`() async throws {
            try await onStage { stage in
                let (server, _) = try await prepared(stage)
                let folder = stage.path("person/.local/share/ubiquity")
                func create(_ name: String, _ more: String...) async throws -> ProgramRun {
                    try await asPerson(
                        stage,
                        [
                            "account", "create", name, "--data", server.data, "--server",
                            server.url, "--sign-in",
                        ] + more)
                }
                let made = try await create("bob")
                #expect(made.status == 0 && made.output.hasPrefix("Signed in to bob"), "\(made)")
                for name in ["", "/account.json", "/account.lock"] {
                    #expect(try owner(folder + name) == Self.person)
                }
                // Nothing is made that could not be used.
                let again = try await create("eve")
                #expect(again.status == 64 && again.errors.contains("already signed in to bob"))
                let roots = stage.path("roots")
                mkdir(roots, 0o755)
                let refused = try await create("eve", "--home", roots + "/home")
                #expect(refused.status != 0 && refused.errors.contains("cannot be written"))
                // Root itself does not put files among another user's.
                for home in [folder, stage.path("person/new")] {
                    let root = try await stage.run([
                        "account", "create", "eve", "--data", server.data, "--server", server.url,
                        "--sign-in", "--home", home,
                    ])
                    #expect(root.status != 0 && root.errors.contains("another user"), "\(root)")
                }
                #expect(!FileManager.default.fileExists(atPath: stage.path("person/new")))
                let list = try await stage.succeed("account", "list", "--data", server.data)
                #expect(!list.contains("eve"))
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
