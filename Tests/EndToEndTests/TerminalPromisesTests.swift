// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing

extension EndToEndTests {
    /// Tests that what a command reports is true by the time it reports it.
    @Suite struct TerminalPromisesTests {
        private static let store = ["--store", "TEAM.app"]

        @Test func `a dry run of an import refuses all that the import refuses`() async throws {
            try await onStage { stage in
                let options = ["--home", stage.path("home")] + Self.store
                func tryOut(_ keys: Int, _ sizes: Int = 1) async throws -> [ProgramRun] {
                    let file = stage.path("\(keys).plist")
                    let entries = (0..<keys).map {
                        ("key \($0)", String(repeating: "x", count: sizes))
                    }
                    let data = try PropertyListSerialization.data(
                        fromPropertyList: Dictionary(uniqueKeysWithValues: entries),
                        format: .binary, options: 0)
                    try data.write(to: URL(fileURLWithPath: file))
                    return [
                        try await stage.run(["import", file, "--dry-run"] + options),
                        try await stage.run(["import", file] + options),
                    ]
                }
                for (keys, size) in [(1_025, 1), (12, 100_000)] {
                    let runs = try await tryOut(keys, size)
                    #expect(runs.map(\.status) == [65, 65])
                    #expect(runs[0].errors.contains("nothing would be imported into TEAM.app: "))
                    #expect(
                        runs[0].errors.replacing("would be", with: "was") == runs[1].errors)
                }
                let empty = try await stage.run(["list", "--json", "--local"] + options)
                #expect(empty.output == "{}\n")
                let fits = try await tryOut(1_000)
                #expect(fits.map(\.status) == [0, 0])
                // What is there counts as well.
                let more = try await tryOut(30)
                #expect(more.map(\.status) == [0, 0])
            }
        }

        @Test func `the settings of a server are shown with their origins and without secrets`()
            async throws
        {
            try await onStage { stage in
                let file = stage.path("server.conf")
                try Data(
                    """
                    # Ours
                    keys-max = 2048
                    identity-issuer = https://id.example
                    identity-audience = app
                    identity-keys = https://u:SECRET@id.example/keys

                    """.utf8
                ).write(to: URL(fileURLWithPath: file))
                chmod(file, 0o600)
                let environment = [
                    "UBIQUITY_SERVE_LOG_LEVEL": "info",
                    "UBIQUITY_DATABASE": "postgresql://ubiquity:SECRET@db/ubiquity",
                ]
                let words = ["serve", "--config", file, "--print-config", "--port", "7000"]
                let shown = try await stage.run(words, environment: environment)
                #expect(shown.status == 0, "\(shown)")
                let rows = shown.output.split(separator: "\n").map {
                    $0.split(separator: #/  +/#).map(String.init)
                }
                let expected = [
                    ["keys-max", "2048", "\(file):2"],
                    ["identity-keys", "https://(not shown)@id.example/keys", "\(file):5"],
                    ["log-level", "info", "UBIQUITY_SERVE_LOG_LEVEL"],
                    ["database", "(not shown)", "UBIQUITY_DATABASE"],
                    ["port", "7000", "option"], ["host", "127.0.0.1", "default"],
                ]
                for row in expected {
                    #expect(
                        rows.contains { $0.prefix(2) == row.prefix(2) && $0[2].hasSuffix(row[2]) },
                        "\(row): \(shown.output)")
                }
                let json = try await stage.run(words + ["--json"], environment: environment)
                let list = try JSONDecoder().decode(
                    [[String: String]].self, from: Data(json.output.utf8))
                for row in expected {
                    #expect(
                        list.contains {
                            $0["name"] == row[0] && $0["value"] == row[1]
                                && $0["from"]?.hasSuffix(row[2]) == true
                        }, "\(row): \(json.output)")
                }
                #expect(!(shown.output + shown.errors + json.output).contains("SECRET"))
            }
        }

        @Test func `sync waits until another device has everything, or says that it does not`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let a = ["--home", try await server.newHome("a", isFirst: true)] + Self.store
                let b = ["--home", try await server.newHome("b")] + Self.store
                try await stage.run(["set", "k", "1"] + a).expectSuccess()
                let late = try await stage.run(["sync", "--until", "b", "--timeout", "10s"] + a)
                #expect(late.status == 69)
                #expect(late.errors.contains("b has never used this store; it was last seen at "))
                try await stage.run(["sync"] + b).expectSuccess()
                let sync = try await stage.run(["sync", "--until", "b"] + a)
                #expect(sync.output == "1 key synced, 0 pending; b has everything\n")
                #expect(try await stage.run(["sync", "--until", "c"] + a).status == 1)
                let devices = try await stage.run(["delivery", "k", "--json"] + a).output
                #expect(devices.split(separator: "\"isCurrent\":true,\"behind\":0").count == 3)
                let table = try await stage.run(["delivery"] + b).output
                #expect(table.split(separator: "\n").count == 3)
                #expect(table.contains("b (this one)"))
            }
        }

        @Test func `sync ends when nothing of what it sent waits for agreement`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = ["--home", try await server.newHome("a", isFirst: true)]
                for round in 1...5 {
                    for key in 1...3 {
                        try await stage.run(
                            ["set", "\(round)-\(key)", "1", "--local"] + home + Self.store
                        ).expectSuccess()
                    }
                    try await server.stop()
                    try await server.start()
                    let sync = try await stage.run(["sync"] + home + Self.store)
                    #expect(sync.output == "\(round * 3) keys synced, 0 pending\n")
                }
            }
        }

        @Test func `a confined device is told that the server does not accept its write`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                _ = try await server.newCode(isFirst: true)
                let code = try await stage.succeed(
                    "account", "code", "ada", "--store", "TEAM.other", "--data", server.data,
                    "--json")
                let answer = try JSONSerialization.jsonObject(with: Data(code.utf8))
                let text = (answer as? [String: Any])?["code"] as? String
                let options = ["--home", stage.path("home")]
                try await stage.run(
                    ["sign-in", "--server", server.url, "--code", try #require(text)] + options
                ).expectSuccess()
                let set = try await stage.run(["set", "a", "1"] + options + Self.store)
                #expect(set.status == 0 && set.errors.contains("confined"))
                let status = try await stage.run(["status"] + options + Self.store)
                #expect(status.output.contains("refused by the server, for this store"))
                #expect(!status.output.contains("will try again"))
                let doctor = try await stage.run(["doctor"] + options + Self.store)
                #expect(doctor.status == 1)
                #expect(doctor.output.contains("this device may not send it."))
                #expect(!doctor.output.contains("sends it now"))
            }
        }

        @Test func `a server announces the operator's credential that is there, and no other`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                _ = try await server.newCode(isFirst: true)
                try await server.stop()
                let (backup, data) = (stage.path("backup"), stage.path("restored"))
                try await stage.succeed("backup", "--data", server.data, "--output", backup)
                let restored = try await stage.run("restore", backup, "--data", data)
                #expect(restored.errors.contains("There is no operator's credential"))
                let json = try await stage.run(
                    "restore", backup, "--data", stage.path("for a script"), "--json")
                #expect(json.output.hasPrefix("{") && json.errors.contains("no operator's cred"))
                let child = try stage.start([
                    "serve", "--port", "0", "--data", data, "--json", "--log-level", "error",
                ])
                try await until("the announcement") { child.output.contains("\n") }
                #expect(child.output.contains("\"operatorCredential\":null"))
            }
        }

        @Test func `a server without any output serves, and opens no file in its place`()
            async throws
        {
            try await onStage { stage in
                let port = try FreePort.find()
                let child = try stage.start(
                    [
                        "-c", "exec \"$0\" \"$@\" <&- >&- 2>&-", try ProgramFile.ubiquity.path(),
                        "serve", "--port", "\(port)", "--data", stage.path("server"),
                    ], program: ProgramFile(path: "/bin/sh"))
                let create = ["account", "create", "ada", "--data", stage.path("server")]
                try await until("the account") {
                    try #require(child.isRunning)
                    return try await stage.run(create).status == 0
                }
                for number in 0...2 {
                    let file = try FileManager.default.destinationOfSymbolicLink(
                        atPath: "/proc/\(child.processID)/fd/\(number)")
                    #expect(file == "/dev/null")
                }
                // A result that nobody gets is an error all the same.
                let script = "exec \"$0\" account list --data \"$1\" >&-"
                let list = try await stage.run(
                    ["-c", script, try ProgramFile.ubiquity.path(), stage.path("server")],
                    program: ProgramFile(path: "/bin/sh"))
                complains(list, 74, "the output cannot be written")
            }
        }

        @Test(arguments: [1, 26, 39])
        func `help is shown on a terminal of any width`(_ columns: Int) async throws {
            try await onStage { stage in
                let help = try await stage.run(["help"], environment: ["COLUMNS": "\(columns)"])
                #expect(help.status == 0 && help.output.contains("SUBCOMMANDS"), "\(help)")
                #if os(Linux)
                let shown = try await PseudoTerminal.run(
                    ["set", "--help"], columns: columns, on: stage)
                #expect(shown.contains("OPTIONS"), "\(shown)")
                #endif
            }
        }

        #if os(Linux)
        /// The answer is there before the question. With an answer that comes later, the signal was ignored
        /// from then on in some rounds only.
        @Test func `Ctrl-C ends a command that goes on after a yes`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let options = ["--home", try await server.newHome("a", isFirst: true)] + Self.store
                server.signal(SIGSTOP)
                defer { server.signal(SIGCONT) }
                for round in 1...3 {
                    try await stage.succeed(["set", "k\(round)", "1", "--local"] + options)
                    let shown = try await PseudoTerminal.run(
                        ["remove", "--prefix", "k", "--timeout", "5"] + options, answer: "y\n",
                        on: stage
                    ) { shown, terminal in
                        let question = shown.range(of: "[y/N] ")
                        guard let question, shown[question.upperBound...].contains("Sending") else {
                            return
                        }
                        terminal.process.signal(SIGINT)
                    }
                    #expect(
                        shown.contains("[y/N] ") && !shown.contains("Saved on this device"),
                        "\(shown)")
                }
            }
        }
        #endif

        @Test func `if a server's log is JSON, there is nothing else on the standard error`()
            async throws
        {
            try await onStage { stage in
                let child = try stage.start([
                    "serve", "--port", "0", "--data", stage.path("server"), "--host", "0.0.0.0",
                    "--log-format", "json",
                ])
                try await until("the last line") {
                    child.errors.contains("ubiquity account create")
                }
                for line in child.errors.split(separator: "\n") {
                    let json = try? JSONSerialization.jsonObject(with: Data(line.utf8))
                    #expect(json is [String: Any], "\(line)")
                }
            }
        }

        @Test
        func `a command that would work on an account other than the one it names does nothing`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                for arguments in [
                    ["account", "delete", "ada", "--yes", "--server", "https://prod.example"],
                    ["account", "delete", "--yes", "--data", server.data, "--home", home],
                    ["account", "delete", "ada", "--yes", "--home", home],
                    ["device", "revoke", "a", "--data", server.data, "--home", home],
                ] {
                    let run = try await stage.run(arguments)
                    #expect(run.status == 64 && run.errors.contains("no effect"), "\(arguments)")
                }
                let list = try await stage.succeed("device", "list", "--home", home, "--json")
                #expect(list.contains("\"name\":\"a\""))
            }
        }
    }
}
