// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity

extension EndToEndTests {
    /// Commands that could cost somebody something say so before, and say afterwards only what is so.
    @Suite struct CarefulCommandTests {
        private static let store = ["--store", "TEAM.app"]

        private func write(_ entries: [String: Any], to file: String) throws {
            let data = try PropertyListSerialization.data(
                fromPropertyList: entries, format: .xml, options: 0)
            try data.write(to: URL(fileURLWithPath: file))
        }

        // MARK: The server's folder

        @Test func `an operator's command finds the folder that the environment names`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let environment = ["UBIQUITY_DATA": server.data]
                let created = try await stage.run(
                    ["account", "create", "ann"], environment: environment)
                #expect(created.status == 0, "\(created)")
                let list = try await stage.run(["account", "list"], environment: environment)
                #expect(list.output.contains("ann"))
                let doctor = try await stage.run(
                    ["doctor", "--data", "-"], environment: environment)
                #expect(doctor.output.contains(server.data), "\(doctor)")
                let elsewhere = try await stage.run(
                    ["account", "list", "--data", stage.path("none")], environment: environment)
                #expect(elsewhere.status == 66 && elsewhere.errors.contains("--data or in UBIQU"))
            }
        }

        @Test(.enabled(if: geteuid() == 0))
        func `a command of another user says how to go on`() async throws {
            try await onStage { stage in
                chmod(stage.folder, 0o755)
                let server = try await ServerProcess.started(stage)
                let run = try await stage.run(
                    [
                        "--reuid=65534", "--clear-groups", try ProgramFile.ubiquity.path(),
                        "account", "create", "ann", "--data", server.data,
                    ], program: ProgramFile(path: "/usr/bin/setpriv"))
                #expect(run.status == 77, "\(run)")
                #expect(
                    run.errors.contains("belongs to root; run the command with `sudo`"), "\(run)")
            }
        }

        // MARK: Files and values

        @Test func `an export replaces no file unasked`() async throws {
            try await onStage { stage in
                let options = ["--home", stage.path("home")] + Self.store
                let file = stage.path("export.plist")
                try await stage.run(["set", "k", "1"] + options).expectSuccess()
                try await stage.run(["export", file] + options).expectSuccess()
                try Data("mine".utf8).write(to: URL(fileURLWithPath: file))
                let refused = try await stage.run(["export", file] + options)
                #expect(refused.status == 73 && refused.errors.contains("give --force"))
                #expect(try String(contentsOfFile: file, encoding: .utf8) == "mine")
                try await stage.run(["export", file, "--force"] + options).expectSuccess()
                #expect(try String(contentsOfFile: file, encoding: .utf8).contains("<plist"))
            }
        }

        @Test func `a file takes the place of a file only`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = ["--home", try await server.newHome("a", isFirst: true)]
                let (file, link, pipe) = (stage.path("f"), stage.path("l"), stage.path("p"))
                try Data("mine".utf8).write(to: URL(fileURLWithPath: file))
                symlink(file, link)
                mkfifo(pipe, 0o600)
                let places = [(link, "a link"), (pipe, "a pipe"), (stage.folder, "a folder")]
                for (path, kind) in places {
                    for line in [
                        ["export", path] + Self.store + home,
                        ["account", "export", "--output", path] + home,
                        ["backup", "--data", server.data, "--output", path],
                    ] {
                        complains(try await stage.run(line + ["--force"]), 73, kind)
                    }
                }
                let files = FileManager.default
                let types = try [file, link, pipe].map { path in
                    try files.attributesOfItem(atPath: path)[.type] as? FileAttributeType
                }
                #expect(types[0] == .typeRegular && types[1] == .typeSymbolicLink)
                #expect(types[2] != .typeRegular)
                #expect(try String(contentsOfFile: file, encoding: .utf8) == "mine")
            }
        }

        @Test func `an export to - is written to standard output, like an import from it`()
            async throws
        {
            try await onStage { stage in
                let options = ["--home", stage.path("home")] + Self.store
                try await stage.run(["set", "k", "1"] + options).expectSuccess()
                let unnamed = try await stage.run(["export"] + options)
                #expect(unnamed.output.contains("<key>k</key>"))
                let named = try await stage.run(["export", "-"] + options)
                #expect(named.output == unnamed.output)
                #expect(!FileManager.default.fileExists(atPath: "-"))
                let json = try await stage.run(["export", "-", "--json"] + options)
                #expect(json.status == 64 && json.errors.contains("--json has no effect with -"))
            }
        }

        @Test func `a store that is nowhere is made by a write only`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = ["--home", try await server.newHome("a", isFirst: true)]
                let typo = ["--store", "TEAM.typo"] + home
                let file = stage.path("export.plist")
                let lines = [
                    ["get", "k"], ["list"], ["export", file], ["remove", "k"], ["history"],
                    ["blame"], ["diff", "--since", "yesterday"], ["undo", "k"], ["delivery"],
                    ["rewind", "--to", "yesterday", "--yes"],
                ]
                let delete = ["store", "delete", "TEAM.typo", "--yes"] + home
                for line in lines.map({ $0 + typo }) + [delete] {
                    let run = try await stage.run(line)
                    #expect(run.status == 1, "\(line): \(run)")
                    let sentence = "there is no store TEAM.typo; `ubiquity store list` has those"
                    #expect(run.errors == "ubiquity: \(sentence) that exist\n", "\(line)")
                }
                let values = stage.path("import.plist")
                try write(["new": 1], to: values)
                let dry = try await stage.run(["import", values, "--dry-run"] + typo)
                #expect(dry.output == "+ new  1\nWould import 1 key: 1 key is new.\n", "\(dry)")
                let local = try await stage.run(["list", "--local"] + typo)
                #expect(local.status == 1)
                #expect(local.errors.contains("no store TEAM.typo on this device"))
                try await server.stop()
                let offline = try await stage.run(["list"] + typo)
                #expect(offline.status == 69)
                #expect(offline.errors.contains("the server's could not be fetched"))
                let stores = try await stage.run(["store", "list", "--json", "--local"] + home)
                #expect(stores.output == "[]\n")
                #expect(!FileManager.default.fileExists(atPath: file))
                try await stage.run(["set", "k", "1"] + typo).expectSuccess()
                let made = try await stage.run(["list", "--json", "--local"] + typo)
                #expect(made.output == "{\"k\":\"1\"}\n")
                let malformed = try await stage.run(["get", "k", "--store", "a b"] + home)
                #expect(malformed.status == 65)
                #expect(
                    malformed.errors.contains("\"a b\", from --store, is not a store identifier"))
            }
        }

        @Test func `reading makes no folder and no store`() async throws {
            try await onStage { stage in
                let typo = ["--home", stage.path("typo")] + Self.store
                for line in [
                    ["get", "k"], ["list"], ["status"], ["status", "--local"], ["export"],
                ] {
                    let run = try await stage.run(line + typo)
                    #expect(run.status == (line[0] == "status" ? 0 : 1), "\(line): \(run)")
                    #expect(run.errors.contains("no store TEAM.app on this device"), "\(run)")
                }
                let get = try await stage.run(["get", "k"] + typo)
                #expect(get.errors.contains("on this device, which is not signed in"))
                #expect(!FileManager.default.fileExists(atPath: stage.path("typo")))
                try await stage.run(["set", "k", "1"] + typo).expectSuccess()
                let missing = try await stage.run(["get", "x"] + typo)
                #expect(missing.status == 1)
                #expect(
                    missing.errors.contains("no key \"x\" on this device, which is not signed in"))
                let other = ["--home", stage.path("typo"), "--store", "TEAM.other"]
                try await stage.run(["status"] + other).expectSuccess()
                let stores = try await stage.run(
                    ["store", "list", "--json", "--home", stage.path("typo")])
                #expect(!stores.output.contains("TEAM.other"), "\(stores)")
            }
        }

        /// Where the system lets nobody mount, this is not tested.
        @Test func `a home on a disk that cannot be written can be read`() async throws {
            try await onStage { stage in
                let disk = stage.path("disk")
                try FileManager.default.createDirectory(
                    atPath: disk, withIntermediateDirectories: true)
                guard mount("test", disk, "tmpfs", 0, "size=16m,mode=700") == 0 else { return }
                defer { umount2(disk, Int32(MNT_DETACH)) }
                let home = ["--home", disk + "/home"] + Self.store
                try await stage.run(["set", "k", "1"] + home).expectSuccess()
                try #require(mount("test", disk, "tmpfs", UInt(MS_REMOUNT | MS_RDONLY), nil) == 0)
                let get = try await stage.run(["get", "k", "--local"] + home)
                #expect(get.output == "1\n" && get.status == 0, "\(get)")
                #expect(get.errors.contains("cannot be written; showing what is in it"))
                let list = try await stage.run(["list", "--json"] + home)
                #expect(list.output == "{\"k\":\"1\"}\n", "\(list)")
                try await stage.run(["status"] + home).expectSuccess()
                let export = try await stage.run(["export"] + home)
                #expect(export.output.contains("<key>k</key>"), "\(export)")
                let set = try await stage.run(["set", "k", "2"] + home)
                #expect(set.status == 77 && set.errors.contains("nothing was changed"), "\(set)")
            }
        }

        @Test func `a dry run of an import shows what would be overwritten, and how`()
            async throws
        {
            try await onStage { stage in
                let options = ["--home", stage.path("home")] + Self.store
                for (key, value) in [("theme", "light"), ("same", "s"), ("other", "o")] {
                    try await stage.run(["set", key, value] + options).expectSuccess()
                }
                let file = stage.path("import.plist")
                try write(["theme": "dark", "same": "s", "new": 1], to: file)
                let dry = try await stage.run(["import", file, "--dry-run"] + options)
                #expect(
                    dry.output == """
                        + new    1
                        ~ theme  "light" → "dark"
                        Would import 2 keys: 1 key is overwritten, 1 key is new.

                        """)
                let json = try await stage.run(["import", file, "--dry-run", "--json"] + options)
                let document = try JSONSerialization.jsonObject(with: Data(json.output.utf8))
                let changes = (document as? [String: Any])?["changes"] as? [[String: Any]]
                let counts = ["imported", "unchanged"].map {
                    (document as? [String: Any])?[$0] as? Int
                }
                #expect(counts == [2, 1])
                #expect(changes?.compactMap { $0["key"] as? String } == ["new", "theme"])
                let value = try await stage.run(["get", "theme"] + options)
                #expect(value.output == "light\n")
                try await stage.run(["import", file] + options).expectSuccess()
                let again = try await stage.run(["import", file, "--dry-run"] + options)
                #expect(again.output == "Would import 0 keys, 3 already had their value.\n")
            }
        }

        // MARK: Accounts and databases

        @Test func `the deletion of an account says how much is lost, and deletes nothing unasked`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                _ = try await server.newHome("b")
                for store in ["TEAM.one", "TEAM.two"] {
                    try await stage.succeed("set", "k", "v", "--store", store, "--home", home)
                }
                let lost = "It has 2 stores with 2 keys and 2 bytes, and 2 signed-in devices."
                for way in [["ada", "--data", server.data], ["--home", home]] {
                    let run = try await stage.run(["account", "delete"] + way)
                    #expect(run.status == 64)
                    #expect(run.errors.contains(lost) && run.errors.contains("give --yes"))
                    #if os(Linux)
                    let asked = try await PseudoTerminal.run(
                        ["account", "delete"] + way, answer: "n\n", on: stage)
                    #expect(asked.contains(lost) && asked.contains("nothing was deleted"))
                    #endif
                }
                let list = try await stage.succeed("account", "list", "--data", server.data)
                #expect(list.contains("ada"))
                #if os(Linux)
                let asked = try await PseudoTerminal.run(
                    ["account", "delete", "ada", "--data", server.data], answer: "yes\n", on: stage)
                #expect(asked.contains("Deleted the account ada."))
                #endif
            }
        }

        @Test func `a restore tells to stop the server, and is in the log of what it restored`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                _ = try await server.newCode(isFirst: true)
                let copy = stage.path("copy")
                try await stage.succeed("backup", "--data", server.data, "--output", copy)
                let restore = ["restore", copy, "--data", server.data, "--replace"]
                let early = try await stage.run(restore)
                #expect(early.status == 69 && early.errors.contains("stop it first"))
                try await server.stop()
                let folder = try await stage.run(
                    "restore", stage.folder, "--data", server.data, "--replace")
                #expect(folder.status == 66)
                #expect(folder.errors == "ubiquity: \(stage.folder) is a folder\n")
                try await stage.run(restore).expectSuccess()
                try await server.start()
                let audit = try await stage.succeed(
                    "audit", "--data", server.data, "--limit", "1", "--json")
                #expect(audit.contains(#""deed":"database-restored""#))
            }
        }

        // MARK: What happens next

        @Test func `status says what is so on a device in every state`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let options = ["--home", stage.path("home")] + Self.store
                func sentence(_ arguments: String...) async throws -> String {
                    let run = try await stage.run(["status"] + arguments + options)
                    return String(run.output.prefix { $0 != "\n" })
                }
                func withoutStore(_ arguments: String...) async throws -> String {
                    try await stage.succeed(["status"] + arguments + options.prefix(2))
                }
                let signedIn = "This device is signed in to ada"
                try await stage.run(["set", "a", "1"] + options).expectSuccess()
                #expect(try await sentence().hasPrefix("This device is not signed in"))
                let code = try await server.newCode(isFirst: true)
                try await stage.succeed(
                    "sign-in", "--server", server.url, "--code", code, "--home",
                    stage.path("home"))
                try await stage.run(["sync"] + options).expectSuccess()
                #expect(try await sentence() == "Everything is synced.")
                #expect(
                    try await withoutStore().hasPrefix("\(signedIn), and the server accepts it."))
                #expect(
                    try await withoutStore("--local").hasPrefix(
                        "\(signedIn). The server was not asked."))
                try await stage.run(["set", "a", "2", "--local"] + options).expectSuccess()
                #expect(
                    try await sentence("--local")
                        == "The server was not asked. 1 key waits to be sent; `ubiquity sync` sends it."
                )
                try await server.stop()
                let unreachable = try await stage.run(["status", "--timeout", "2"] + options)
                #expect(unreachable.output.hasPrefix("The server cannot be reached: "))
                #expect(
                    unreachable.output.contains(
                        "1 key waits to be sent; `ubiquity sync` tries again."))
                #expect(
                    try await withoutStore("--timeout", "2").hasPrefix(
                        "\(signedIn), but the server cannot be reached: "))
                // This process ends now: nothing tries again by itself.
                #expect(!unreachable.output.contains("Next try"))
                #expect(!unreachable.output.contains("will try"))
                try await server.start()
                let list = try await stage.succeed(
                    "device", "list", "--account", "ada", "--data", server.data, "--json")
                let devices = try JSONSerialization.jsonObject(with: Data(list.utf8))
                let id = (devices as? [[String: Any]])?.first?["id"] as? String
                try await stage.succeed(
                    "device", "revoke", try #require(id), "--account", "ada", "--data", server.data)
                let revoked = try await sentence()
                #expect(
                    revoked.hasPrefix("The server does not accept this device's sign-in any more."))
                #expect(revoked.hasSuffix("1 key waits until then."), "\(revoked)")
                #expect(
                    try await withoutStore().hasPrefix(
                        "The server does not accept this device's sign-in any more."))
                #expect(try await withoutStore("--json").contains("\"isAccepted\":false"))
                let doctor = try await stage.run(["doctor"] + options)
                #expect(doctor.output.hasPrefix("Found 1 problem and 1 note.\n"), "\(doctor)")
                #expect(!doctor.output.contains("sends it now"))
                try await stage.succeed("sign-out", "--home", stage.path("home"))
                #expect(try await sentence().hasPrefix("This device is not signed in"))
            }
        }

        // MARK: Terminals

        #if os(Linux)
        @Test func `a QR code is only spoken of where it is shown`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                for (variables, columns, isShown) in [
                    (["LANG": "C.UTF-8"], 120, true), (["LANG": "C.UTF-8"], 30, false),
                    (["LC_ALL": "C", "LANG": "C.UTF-8"], 120, false), ([:], 120, false),
                ] {
                    let shown = try await PseudoTerminal.run(
                        ["pair", "--home", home], environment: variables, columns: columns,
                        on: stage)
                    #expect(shown.contains("or with the link"), "\(shown)")
                    #expect(shown.contains("QR code") == isShown, "\(variables) \(columns)")
                    #expect(shown.contains("█") == isShown, "\(variables) \(columns)")
                    #expect(isShown || shown.allSatisfy(\.isASCII))
                }
            }
        }
        #endif
    }
}
