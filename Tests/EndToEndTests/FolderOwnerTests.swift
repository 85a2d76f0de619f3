// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing

extension EndToEndTests {
    /// Root in the data folder of a service's user, who would like to be root. Only root can show it.
    @Suite(.enabled(if: geteuid() == 0)) struct FolderOwnerTests {
        private static let user: UInt32 = 65_534

        private func owner(_ path: String) throws -> UInt32? {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            return (attributes[.ownerAccountID] as? NSNumber)?.uint32Value
        }

        /// A data folder of the service's user with one account, and a backup of it.
        private func prepared(_ stage: Stage) async throws -> (data: String, backup: String) {
            // The service's user comes through it to the data folder.
            chmod(stage.folder, 0o755)
            let server = try await ServerProcess.started(stage)
            _ = try await server.newCode(isFirst: true)
            try await server.stop()
            let backup = stage.path("backup")
            try await stage.succeed("backup", "--data", server.data, "--output", backup)
            chown(backup, Self.user, Self.user)
            chown(server.data, Self.user, Self.user)
            for name in try FileManager.default.contentsOfDirectory(atPath: server.data) {
                chown(server.data + "/" + name, Self.user, Self.user)
            }
            return (server.data, backup)
        }

        @Test func `a link that the service's user put there leads root to no file of its own`()
            async throws
        {
            try await onStage { stage in
                let (data, backup) = try await prepared(stage)
                let secret = stage.path("secret")
                try Data("root's".utf8).write(to: URL(fileURLWithPath: secret))
                chmod(secret, 0o600)
                for name in ["lock", "operator-credential", "ubiquity.sqlite-wal"] {
                    let link = data + "/" + name
                    let kept = link + ".kept"
                    if FileManager.default.fileExists(atPath: link) { rename(link, kept) }
                    symlink(secret, link)
                    let restore = ["restore", backup, "--data", data, "--replace"]
                    for arguments in [
                        restore,
                        ["backup", "--data", data, "--output", stage.path("b"), "--force"],
                        ["account", "create", "eve-\(name)", "--data", data],
                        ["doctor", "--data", data],
                    ] {
                        let run = try await stage.run(arguments)
                        #expect(run.errors.contains("Working as"), "\(run)")
                        #expect(!(run.output + run.errors).contains("root's"))
                        #expect(try owner(secret) == 0, "\(arguments)")
                        #expect(try String(contentsOfFile: secret, encoding: .utf8) == "root's")
                    }
                    unlink(link)
                    rename(kept, link)
                }
            }
        }

        @Test func `what root does there is the service's user's`() async throws {
            try await onStage { stage in
                let (data, backup) = try await prepared(stage)
                let created = try await stage.run("account", "create", "eve", "--data", data)
                #expect(created.status == 0, "\(created)")
                let restored = try await stage.run(
                    "restore", backup, "--data", data, "--replace", "--json")
                #expect(restored.status == 0, "\(restored)")
                for name in try FileManager.default.contentsOfDirectory(atPath: data) {
                    #expect(try owner(data + "/" + name) == Self.user, "\(name)")
                }
                let list = try await stage.run("account", "list", "--data", data)
                #expect(list.output.contains("ada") && !list.output.contains("eve"))
                // Its output must be that user's to write, and nobody else's to read.
                let (place, file) = (stage.path("place"), stage.path("place/copy"))
                mkdir(place, 0o700)
                let backingUp = ["backup", "--data", data, "--output", file]
                #expect(try await stage.run(backingUp).status == 73)
                chown(place, Self.user, Self.user)
                #expect(try await stage.run(backingUp).status == 0)
                #expect(try owner(file) == Self.user)
                let child = try stage.start(["serve", "--port", "0", "--data", data])
                try await until("the start") { child.output.contains("serves on") }
                #expect(child.errors.contains("Working as"))
                child.signal(SIGTERM)
                #expect(try await child.exit() == 0)
            }
        }

        #if os(Linux)
        /// Whether root may have mounts of its own, which not every container allows.
        private static let hasMounts: Bool = {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
            process.arguments = ["--mount", "true"]
            process.standardError = FileHandle.nullDevice
            guard (try? process.run()) != nil else { return false }
            process.waitUntilExit()
            return process.terminationStatus == 0
        }()

        @Test(.enabled(if: hasMounts))
        func `accounts' names are kept for the user who called sudo, with that user's rights`()
            async throws
        {
            try await onStage { stage in
                let (data, _) = try await prepared(stage)
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

        @Test func `a path that two users can redirect is refused`() async throws {
            try await onStage { stage in
                let (data, _) = try await prepared(stage)
                let (place, link) = (stage.path("place"), stage.path("place/link"))
                mkdir(place, 0o755)
                symlink(data, link)
                chown(place, 65_533, 65_533)
                let run = try await stage.run("account", "list", "--data", link)
                #expect(run.status == 77 && run.errors.contains("folders on the path to"), "\(run)")
            }
        }
    }
}
