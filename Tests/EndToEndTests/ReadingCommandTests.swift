// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing

extension EndToEndTests {
    /// Tests that what commands print is whole in a pipe, fits a terminal, and can be told apart.
    @Suite struct ReadingCommandTests {
        private static let store = ["--store", "TEAM.app"]
        private static let long = String(repeating: "x", count: 300)
        private static let columns = 40

        /// Two signed-in homes: `a` with the name laptop, `b` with the name phone.
        private func onTwo(
            _ body: (Stage, ServerProcess, _ a: [String], _ b: [String]) async throws -> Void
        ) async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let a = ["--home", try await server.newHome("laptop", isFirst: true)]
                let b = ["--home", try await server.newHome("phone")]
                try await body(stage, server, a, b)
            }
        }

        @Test func `in a pipe, values are whole`() async throws {
            try await onTwo { stage, _, a, _ in
                let options = a + Self.store
                try await stage.succeed(["set", "before", "1"] + options)
                let time = Date().formatted(.iso8601)
                try await until("a later second") { Date().formatted(.iso8601) > time }
                try await stage.succeed(["set", "long", Self.long] + options)
                let file = stage.path("other.json")
                try Data("{\"long\":\"\(Self.long)y\"}".utf8).write(to: URL(filePath: file))
                for line in [
                    ["list"], ["history"], ["history", "long"], ["blame"],
                    ["diff", "--since", time], ["rewind", "--to", time, "--dry-run"],
                    ["import", file, "--dry-run"],
                ] {
                    let output = try await stage.succeed(line + options)
                    #expect(output.contains("\"\(Self.long)\""), "\(line): \(output)")
                }
            }
        }

        #if os(Linux)
        @Test func `at 40 columns nothing is cut twice`() async throws {
            try await onTwo { stage, _, a, _ in
                let options = a + Self.store
                for key in ["a.long.key.of.an.app.with.many.words", "k", "京都京都京都"] {
                    try await stage.succeed(["set", key, Self.long] + options)
                    try await stage.succeed(
                        ["set", key, String(repeating: "京", count: 300)] + options)
                }
                for line in [
                    ["list"] + options, ["history"] + options, ["blame"] + options,
                    ["diff", "--since", "yesterday"] + options, ["device", "list"] + a,
                ] {
                    let shown = try await PseudoTerminal.run(
                        line, columns: Self.columns, on: stage)
                    let lines = shown.split(separator: "\n")
                    #expect(lines.count > 2)
                    for line in lines where line.contains("…") {
                        let wide = line.count { $0.unicodeScalars.contains { $0.value > 0x2E80 } }
                        #expect(line.count + wide <= Self.columns, "\(line)")
                    }
                    // Rows that do not fit are paragraphs, not wrapped.
                    let wide = lines.filter { $0.count > Self.columns && $0.contains("  ") }
                    #expect(
                        wide.allSatisfy { $0.hasPrefix("  ") || $0.hasPrefix("Since") }, "\(wide)")
                }
            }
        }

        @Test func `a watch says that it is connected before the first change`() async throws {
            try await onTwo { stage, server, a, b in
                try await stage.succeed(["set", "k", "0"] + b + Self.store)
                func watch(_ value: String, _ change: () async throws -> Void) async throws {
                    async let watching = PseudoTerminal.run(
                        ["watch", "--until", "k"] + a + Self.store, on: stage)
                    try await change()
                    try await stage.succeed(["sync"] + b + Self.store)
                    // Until the watch has it.
                    let writing = Task {
                        var number = 0
                        while !Task.isCancelled {
                            number += 1
                            _ = try await stage.run(
                                ["set", "k", "\(value)\(number)"] + b + Self.store)
                            try await Task.sleep(for: .milliseconds(100))
                        }
                    }
                    defer { writing.cancel() }
                    let shown = try await watching
                    let connected = try #require(shown.range(of: "Connected."), "\(shown)")
                    let changed = try #require(shown.range(of: "k = \"\(value)"), "\(shown)")
                    #expect(connected.lowerBound < changed.lowerBound, "\(shown)")
                }
                try await watch("first") {}
                try await server.kill()
                try await watch("second") {
                    try await Task.sleep(for: .seconds(1))
                    try await server.start()
                }
            }
        }
        #endif

        @Test func `the history of a key that was never there is a no, as its value is`()
            async throws
        {
            try await onTwo { stage, _, a, _ in
                let options = a + Self.store
                try await stage.succeed(["set", "k", "1"] + options)
                for line in [
                    ["get", "nope"], ["history", "nope"], ["history", "nope", "--local"],
                ] {
                    for form in [[], ["--json"]] {
                        let run = try await stage.run(line + form + options)
                        #expect(run.status == 1 && run.output.isEmpty, "\(line): \(run)")
                        #expect(run.errors.contains("\"nope\""))
                    }
                }
                try await stage.succeed(["remove", "k"] + options)
                let gone = try await stage.succeed(["history", "k"] + options)
                #expect(gone.contains("(removed)"))
            }
        }

        @Test func `get takes several keys, keys lists them, and remove takes a prefix`()
            async throws
        {
            try await onTwo { stage, _, a, _ in
                let options = a + Self.store
                for key in ["editor.a", "editor.b", "other"] {
                    try await stage.succeed(["set", key, "--integer", "5"] + options)
                }
                #expect(
                    try await stage.succeed(["get", "other", "editor.a"] + options) == "5\n5\n")
                let json = try await stage.succeed(
                    ["get", "other", "editor.a", "--json"] + options)
                #expect(json == "{\"editor.a\":5,\"other\":5}\n")
                let missing = try await stage.run(["get", "other", "x", "y"] + options)
                #expect(missing.status == 1 && missing.output.isEmpty, "\(missing)")
                #expect(missing.errors.contains("\"x\", \"y\""), "\(missing)")
                let raw = try await stage.run(["get", "other", "editor.a", "--raw"] + options)
                #expect(raw.status == 64)

                let keys = try await stage.succeed(["keys"] + options)
                #expect(keys == "editor.a\neditor.b\nother\n")
                let some = try await stage.succeed(
                    ["keys", "--prefix", "editor.", "--json"] + options)
                #expect(some == "[\"editor.a\",\"editor.b\"]\n")

                let unsure = try await stage.run(["remove", "--prefix", "editor."] + options)
                #expect(unsure.status == 64 && unsure.errors.contains("2 keys"), "\(unsure)")
                let both = try await stage.run(
                    ["remove", "other", "--prefix", "e", "--yes"] + options)
                #expect(both.status == 64)
                let removed = try await stage.succeed(
                    ["remove", "--prefix", "editor.", "--yes", "--json"] + options)
                #expect(removed.contains("\"removed\":[\"editor.a\",\"editor.b\"]"))
                #expect(try await stage.succeed(["keys"] + options) == "other\n")
                let none = try await stage.run(
                    ["remove", "--prefix", "editor.", "--yes"] + options)
                #expect(none.status == 0 && none.errors.contains("No key begins"), "\(none)")
                #expect(try await stage.run(["remove"] + options).status == 64)
            }
        }

        @Test func `a device has a short ID, and a name in use is not given twice unasked`()
            async throws
        {
            try await onTwo { stage, _, a, _ in
                let list = try await stage.succeed(["device", "list"] + a)
                let id = try #require(list.firstMatch(of: #/phone +([0-9a-f]+) /#)?.1)
                #expect(id.count == 8)
                let renamed = try await stage.succeed(
                    ["device", "rename", String(id), "tablet"] + a)
                #expect(renamed == "Renamed the device \(id) to tablet.\n")
                let twice = try await stage.run(["device", "rename", "tablet", "laptop"] + a)
                #expect(twice.status == 64 && twice.errors.contains("laptop"), "\(twice)")
                // Its own name is no other's.
                try await stage.succeed(["device", "rename", "tablet", "tablet"] + a)
                try await stage.succeed(["device", "rename", "tablet", "laptop", "--yes"] + a)
                let both = try await stage.run(["device", "revoke", "laptop"] + a)
                #expect(both.status == 65 && both.errors.contains(id), "\(both)")
                try await stage.succeed(["device", "revoke", String(id.prefix(6))] + a)
                #expect(try await stage.run(["device", "revoke", "0"] + a).status == 1)
            }
        }

        @Test func `what a device has is delivery`() async throws {
            try await onTwo { stage, _, a, b in
                try await stage.succeed(["set", "k", "1"] + a + Self.store)
                let table = try await stage.succeed(["delivery"] + b + Self.store)
                #expect(table.contains("phone (this one)") && table.contains("everything"))
            }
        }

        @Test func `the audit log names accounts and devices`() async throws {
            try await onTwo { stage, server, a, _ in
                try await stage.succeed(["device", "rename", "phone", "tablet"] + a)
                try await stage.succeed(["device", "revoke", "tablet"] + a)
                let audit = try await stage.succeed("audit", "--data", server.data)
                let lines = audit.split(separator: "\n")
                let renamed = lines.first { $0.contains("device-renamed") }
                #expect(renamed?.contains(#/ ada .*laptop/#) == true, "\(audit)")
                let json = try await stage.succeed("audit", "--data", server.data, "--json")
                #expect(json.contains("\"accountName\":\"ada\""), "\(json)")
                #expect(json.contains("\"actorDeviceName\":\"laptop\""))
            }
        }

        @Test func `keys that look alike are told apart`() async throws {
            try await onTwo { stage, _, a, _ in
                let options = a + Self.store
                for key in ["th\u{E9}me", "the\u{301}me", "plain", "tоn"] {
                    try await stage.succeed(["set", key, "1"] + options)
                }
                for line in [["list"], ["history"], ["blame"], ["diff", "--since", "yesterday"]] {
                    let shown = try await stage.succeed(line + options)
                    #expect(shown.contains(#"th\u00e9me"#), "\(shown)")
                    #expect(shown.contains(#"the\u0301me"#), "\(shown)")
                }
                for line in [["get", "ton"], ["history", "ton"], ["remove", "ton"]] {
                    let run = try await stage.run(line + options)
                    #expect(run.errors.contains(#"t\u043en"#), "\(run)")
                }
            }
        }

        @Test func `the demo shows an entry that no store takes, and goes on`() async throws {
            try await onStage { stage in
                let file = stage.path("preferences.plist")
                let key = String(repeating: "k", count: 80)
                let data = try PropertyListSerialization.data(
                    fromPropertyList: ["theme": "dark", "EditorFontSize": 12, key: 1],
                    format: .xml, options: 0)
                try data.write(to: URL(filePath: file))
                let run = try await stage.run(["--plist", file], program: ProgramFile("Demo"))
                #expect(run.status == 0, "\(run)")
                #expect(run.output.contains(key) && run.output.contains("64 bytes"), "\(run)")
            }
        }
    }
}
