// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity
internal import UbiquityCore

extension EndToEndTests {
    @Suite struct BadInputTests {
        private static let store = ["--store", Device.identifier]

        @Test(arguments: [
            (["get", "a"], 64, "no store is given"),
            (["get", "a", "--store", "a/b"], 65, "store identifier"),
            (["set", "", "1", "--store", "s"], 65, "empty"),
            (["set", "a", "--integer", "x", "--store", "s"], 65, "not a whole number"),
            (["set", "a", "--store", "s"], 64, "no value"),
            (["set", "a", "1", "--store", "s", "--timeout", "0"], 64, "--timeout"),
            (["get", "a", "--store", "s"], 1, "no store s"),
            (["get", "--store", "s"], 64, "ubiquity get --help"),
            (["get", "a", "--stor", "s"], 64, "--stor"),
            (["import", "/nowhere/a.plist", "--store", "s"], 66, "/nowhere/a.plist"),
            (["sync", "--store", "s"], 77, "not signed in"),
            (["sign-out"], 77, "not signed in"),
            (["sign-in", "--server", "nonsense", "--code", "AAAA"], 64, "nonsense"),
            (
                ["sign-in", "--server", "http://127.0.0.1:1", "--code", "AAAA-AAAA-AAAA"], 69,
                "127.0.0.1"
            ),
        ])
        func `a command that cannot work says why in a line`(
            _ arguments: [String], _ status: Int, _ word: String
        ) async throws {
            try await onStage { stage in
                let run = try await stage.run(arguments + ["--home", stage.path("home")])
                complains(run, status, word)
            }
        }

        @Test func `wrong, malformed and used codes are refused`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let code = try await server.newCode(isFirst: true)
                func signIn(_ code: String, _ home: String) async throws -> ProgramRun {
                    try await stage.run(
                        "sign-in", "--server", server.url, "--code", code, "--home",
                        stage.path(home))
                }
                complains(try await signIn("AAAA-BBBB-CCCC", "a"), 77, "code is wrong")
                complains(try await signIn("hello", "a"), 77, "code is wrong")
                #expect(try await signIn(code, "a").status == 0)
                complains(try await signIn(code, "b"), 77, "already been used")
                complains(try await signIn(code, "a"), 64, "signed in to ada")
                complains(
                    try await stage.run("account", "create", "ada", "--data", server.data), 1,
                    "exists")
                complains(
                    try await stage.run("account", "code", "eve", "--data", server.data), 1,
                    "no account")
            }
        }

        @Test func `a device whose credential was revoked is told, and keeps its values`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                let options = ["--home", home] + Self.store
                #expect(try await stage.run(["set", "a", "1"] + options).status == 0)
                let account = try #require(try DeviceHome(path: home).load().signedIn)
                let revocation = try await RawAnswer.to(
                    "DELETE", "\(server.url)/v1/devices/\(account.device)",
                    headers: [("Authorization", "Bearer \(account.credential)")])
                #expect(revocation.status == 204)
                complains(try await stage.run(["sync"] + options), 77, "revoked")
                let get = try await stage.run(["get", "a", "--local"] + options)
                #expect(get.output == "1\n")
            }
        }

        @Test func `text that is not UTF-8 is refused with its place, and not changed`()
            async throws
        {
            try await onStage { stage in
                let home = ["--home", stage.path("home")] + Self.store
                for (line, argument, byte) in [
                    ("set name \"$(printf 'Andr\\351')\"", 3, 5),
                    ("set \"$(printf '\\303\\244\\303')\" 1", 2, 3),
                    ("export \"$(printf './\\377')\"", 2, 3),
                    ("list --store=\"$(printf 'a\\200')\"", 2, 10),
                ] {
                    let place = "argument \(argument) is not text in UTF-8: its byte \(byte) is"
                    let script = "exec \"$0\" \(line) \"$@\""
                    let run = try await stage.run(
                        ["-c", script, try ProgramFile.ubiquity.path()] + home,
                        program: ProgramFile(path: "/bin/sh"))
                    complains(run, 65, place)
                }
                let script = "UBIQUITY_HOME=$(printf '/\\351') exec \"$0\" list --store s"
                let variable = try await stage.run(
                    ["-c", script, try ProgramFile.ubiquity.path()],
                    program: ProgramFile(path: "/bin/sh"))
                complains(variable, 65, "UBIQUITY_HOME is not text in UTF-8: its byte 2")
                #expect(!FileManager.default.fileExists(atPath: stage.path("home")))
            }
        }

        /// As a user whom permissions concern.
        @Test(.enabled(if: geteuid() == 0))
        func `what cannot be read is not taken for absent`() async throws {
            try await onStage { stage in
                chmod(stage.folder, 0o755)
                let (home, data) = (stage.path("home"), stage.path("data"))
                let user: UInt32 = 65_534
                for folder in [home, data] {
                    mkdir(folder, 0o700)
                    chown(folder, user, user)
                }
                func run(_ words: [String]) async throws -> ProgramRun {
                    try await stage.run(
                        ["--reuid=\(user)", "--clear-groups", try ProgramFile.ubiquity.path()]
                            + words, program: ProgramFile(path: "/usr/bin/setpriv"))
                }
                let options = ["--home", home] + Self.store
                try await run(["set", "a", "1"] + options).expectSuccess()
                let stores = home + "/stores"
                for (folder, mode) in [(stores, 0o700), (stores + "/1", 0o700), (stores, 0o500)] {
                    chmod(folder, 0)
                    chmod(home, mode_t(mode))
                    for line in [["list"], ["get", "a"], ["status"], ["set", "b", "1"]] {
                        complains(try await run(line + options), 74, "cannot be read (Permission")
                    }
                    complains(
                        try await run(["store", "list", "--home", home]), 74, "cannot be read")
                    let doctor = try await run(["doctor"] + options)
                    #expect(doctor.status == 1 && doctor.output.contains("cannot be read"))
                    chmod(home, 0o700)
                    chmod(folder, 0o700)
                }
                try await run(["get", "a"] + options).expectSuccess()

                chmod(data, 0)
                let serve = ["serve", "--port", "0", "--data"]
                complains(try await run(serve + [data]), 73, "chmod -R u+rwX")
                chmod(data, 0o500)
                complains(try await run(serve + [data + "/a/b"]), 73, "used: Permission denied")
            }
        }

        @Test func `a server that cannot start says why`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                func serve(
                    _ port: Int, _ data: String, _ options: [String] = []
                ) async throws -> ProgramRun {
                    try await stage.run(
                        ["serve", "--port", "\(port)", "--data", data, "--log-level", "critical"]
                            + options)
                }
                complains(try await serve(server.port, stage.path("other")), 69, "taken")
                let metrics = ["--metrics-port", "\(server.port)"]
                complains(try await serve(0, stage.path("third"), metrics), 69, "taken")
                complains(try await serve(0, server.data), 69, "another server")
                try Data("text".utf8).write(to: URL(fileURLWithPath: stage.path("file")))
                complains(try await serve(0, stage.path("file")), 73, "cannot be used")
                complains(
                    try await stage.run("account", "list", "--data", stage.path("nowhere")), 66,
                    "no server data")
                complains(
                    try await stage.run("serve", "--log-level", "loud"), 64,
                    "trace, debug, info, notice, warning, error or critical")
            }
        }

        @Test func `a damaged database of the server is left as it is`() async throws {
            try await serverRefuses("is damaged", damage)
        }

        @Test func `a newer version's database of the server is left as it is`() async throws {
            try await serverRefuses("newer version", makeNewer)
        }

        private func serverRefuses(
            _ word: String, _ change: (String) throws -> Void
        ) async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                _ = try await server.newCode(isFirst: true)
                try await server.stop()
                let file = server.data + "/ubiquity.sqlite"
                try change(file)
                let before = FileManager.default.contents(atPath: file)
                let run = try await stage.run("serve", "--port", "0", "--data", server.data)
                complains(run, 74, word)
                #expect(FileManager.default.contents(atPath: file) == before)
            }
        }

        @Test func `a damaged database of a device is left as it is`() async throws {
            try await deviceRefuses("damaged", damage)
        }

        @Test func `a newer version's database of a device is left as it is`() async throws {
            try await deviceRefuses("newer version", makeNewer)
        }

        @Test func `a device's file that is not a database is left as it is`() async throws {
            try await deviceRefuses("is not a store") {
                try Data("no database, but a text of some length".utf8).write(
                    to: URL(fileURLWithPath: $0))
            }
        }

        private func deviceRefuses(
            _ word: String, _ change: (String) throws -> Void
        ) async throws {
            try await onStage { stage in
                let home = stage.path("home")
                let options = ["--home", home] + Self.store
                let app = try Device(home: home)
                for number in 1...20 {
                    let text = String(repeating: "text ", count: 2_000)
                    app.store.set(text, forKey: "key \(number)")
                }
                #expect(app.store.synchronize())
                app.close()
                let device = try DeviceHome(path: home)
                let file = try device.storePath(
                    for: Device.identifier, folder: try device.load().folder)
                try change(file)
                let before = FileManager.default.contents(atPath: file)
                complains(try await stage.run(["set", "b", "2"] + options), 74, word)
                complains(try await stage.run(["get", "key 1"] + options), 74, word)
                #expect(FileManager.default.contents(atPath: file) == before)
            }
        }

        @Test func `property lists that a store cannot hold are not imported`() async throws {
            try await onStage { stage in
                let options = ["--home", stage.path("home")] + Self.store
                #expect(try await stage.run(["set", "a", "1"] + options).status == 0)
                func imported(_ bytes: [UInt8]) async throws -> ProgramRun {
                    let file = stage.path("file.plist")
                    try Data(bytes).write(to: URL(fileURLWithPath: file))
                    return try await stage.run(["import", file] + options)
                }
                let begin = "<?xml version=\"1.0\"?><plist version=\"1.0\">"
                let array = "\(begin)<array><string>a</string></array></plist>"
                complains(try await imported(Array(array.utf8)), 65, "an array")
                complains(try await imported(Array("nonsense {".utf8)), 65, "not a property list")
                complains(try await imported([]), 65, "not a property list")
                let mixed = "\(begin)<dict><key></key><true/><key>b</key><true/></dict></plist>"
                complains(try await imported(Array(mixed.utf8)), 65, "nothing was", lines: 2)
                complains(try await imported(Self.withUID), 65, "nothing was", lines: 2)
                let list = try await stage.run(["list", "--json", "--local"] + options)
                #expect(list.output == "{\"a\":\"1\"}\n")
            }
        }

        /// A keyed archive's reference under the key "a", which is no property-list value.
        private static let withUID: [UInt8] =
            Array("bplist00".utf8) + [0xD1, 1, 2, 0x51, 0x61, 0x80, 1, 8, 11, 13]
            + [0, 0, 0, 0, 0, 0, 1, 1] + [0, 0, 0, 0, 0, 0, 0, 3] + [0, 0, 0, 0, 0, 0, 0, 0]
            + [0, 0, 0, 0, 0, 0, 0, 15]

        @Test func `malformed and oversized requests are refused, and nothing is lost`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                let options = ["--home", home] + Self.store
                #expect(try await stage.run(["set", "a", "1"] + options).status == 0)
                let account = try #require(try DeviceHome(path: home).load().signedIn)
                func push(_ body: String, _ type: String) async throws -> RawAnswer {
                    try await RawAnswer.to(
                        "POST", "\(server.url)/v1/stores/\(Device.identifier)/changes",
                        headers: [
                            ("Authorization", "Bearer \(account.credential)"),
                            ("Content-Type", type),
                        ], body: body)
                }
                let form = "application/json"
                for body in ["", "{", "[]", "{\"transactions\":5}", "\u{0}", "{}{}"] {
                    #expect(try await push(body, form).status == 400, "\(body)")
                }
                #expect(try await push("{}", "text/plain").status == 415)
                let noKey = "{\"transactions\":[{\"writes\":[{\"milliseconds\":\"1\"}]}]}"
                #expect(try await push(noKey, form).status == 400)
                let deep = String(repeating: "[", count: 100_000)
                #expect(try await push(deep, form).status == 400)
                let large = try await push(String(repeating: " ", count: 9 << 20), form)
                #expect(large.status == 413)
                #expect(large.body.contains("8388608"))
                #expect(try await stage.run(["sync"] + options).status == 0)
                #expect(try await stage.run(["get", "a"] + options).output == "1\n")
            }
        }

        /// Overwrites the middle, as a bad disk would.
        private func damage(_ file: String) throws {
            var bytes = try Data(contentsOf: URL(fileURLWithPath: file))
            for index in stride(from: 100, to: bytes.count, by: 7) { bytes[index] = 0xA5 }
            try bytes.write(to: URL(fileURLWithPath: file))
        }

        /// The place of SQLite's `user_version` is part of its file format.
        private func makeNewer(_ file: String) throws {
            var bytes = try Data(contentsOf: URL(fileURLWithPath: file))
            bytes.replaceSubrange(60..<64, with: [0, 0, 0, 99])
            try bytes.write(to: URL(fileURLWithPath: file))
        }
    }
}
