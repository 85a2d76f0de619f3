// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing

extension EndToEndTests {
    /// Tests the commands that people and their scripts type every day.
    @Suite struct DailyUseTests {
        private static let store = ["--store", "TEAM.app"]

        private func run(_ arguments: [String], input: String, on stage: Stage) async throws {
            let pipe = Pipe()
            let child = try stage.start(arguments, input: pipe)
            try pipe.fileHandleForWriting.write(contentsOf: Data(input.utf8))
            try pipe.fileHandleForWriting.close()
            let status = try await child.exit()
            #expect(status == 0, "\(child.errors)")
        }

        @Test func `text comes from standard input and from files, and is given back as it was`()
            async throws
        {
            try await onStage { stage in
                let options = ["--home", stage.path("home")] + Self.store
                let text = "two\nlines \"\u{1B}[2J\"\n"
                try await run(["set", "in", "-"] + options, input: text, on: stage)
                try text.write(toFile: stage.path("text"), atomically: true, encoding: .utf8)
                let file = "@" + stage.path("text")
                try await stage.run(["set", "file", "--string", file] + options).expectSuccess()
                for key in ["in", "file"] {
                    #expect(try await stage.run(["get", key] + options).output == text)
                    let raw = try await stage.run(["get", key, "--raw"] + options).output
                    #expect(raw + "\n" == text)
                }
                let large = try await stage.run(["set", "k", "--string", "@/dev/zero"] + options)
                #expect(large.status == 65 && large.errors.contains("MB"), "\(large.errors)")
                let none = try await stage.run(["set", "k", "--string", "@none"] + options)
                #expect(none.status == 66 && none.errors.contains("there is no file none"))
            }
        }

        @Test func `values have the JSON that a script expects, or keep their types`() async throws
        {
            try await onStage { stage in
                let options = ["--home", stage.path("home")] + Self.store
                for line in [
                    ["list", "--array", "a", "--integer", "-5", "--bool", "yes"],
                    ["map", "--dict", "b", "--real", "0.5", "a", "--data", "aGk="],
                    ["when", "--date", "2026-11-21T10:00:00Z"], ["below", "-5"],
                ] { try await stage.run(["set"] + line + options).expectSuccess() }
                let plain = try await stage.run(["list", "--json"] + options).output
                #expect(
                    plain == #"{"below":"-5","list":["a",-5,true],"map":{"a":"aGk=","b":0.5},"#
                        + #""when":"2026-11-21T10:00:00Z"}"# + "\n")
                #expect(try await stage.run(["export", "--json"] + options).output == plain)
                #expect(
                    try await stage.run(["get", "when", "--json"] + options).output
                        == "\"2026-11-21T10:00:00Z\"\n")
                let exact = try await stage.run(["list", "--exact"] + options).output
                #expect(exact.contains(#""below":{"string":"-5"}"#), "\(exact)")
                #expect(exact.contains(#"{"integer":"-5"}"#) && exact.contains(#"{"date":"#))
                let some = try await stage.run(["list", "--prefix", "l", "--json"] + options).output
                #expect(some == "{\"list\":[\"a\",-5,true]}\n")
                let none = try await stage.run(["list", "--prefix", "x"] + options)
                #expect(none.status == 0 && none.errors == "No key begins with \"x\".\n")
            }
        }

        @Test func `the stores are listed, and one is emptied on all devices`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let a = ["--home", try await server.newHome("a", isFirst: true)]
                let b = ["--home", try await server.newHome("b")]
                for (key, store) in [("k", "TEAM.app"), ("l", "TEAM.app"), ("k", "TEAM.other")] {
                    try await stage.run(["set", key, "1", "--store", store] + a).expectSuccess()
                }
                try await stage.run(["set", "k", "1", "--store", "TEAM.here", "--local"] + b)
                    .expectSuccess()
                try await stage.run(["sync"] + Self.store + b).expectSuccess()
                let stores = try await stage.run(["store", "list", "--json"] + b).output
                let list = try JSONSerialization.jsonObject(with: Data(stores.utf8))
                let rows = try #require(list as? [[String: Any]])
                #expect(
                    rows.map { $0["identifier"] as? String }
                        == ["TEAM.app", "TEAM.here", "TEAM.other"])
                #expect(rows.map { $0["keys"] as? Int } == [2, 1, 1])
                #expect(rows.map { $0["isHere"] as? Bool } == [true, true, false])

                let asked = try await stage.run(["store", "delete", "TEAM.app"] + b)
                #expect(asked.status == 64)
                #expect(asked.errors.contains("TEAM.app (2 keys, "), "\(asked.errors)")
                #expect(asked.errors.contains("from all devices of ada"), "\(asked.errors)")
                #expect(try await stage.run(["get", "k"] + Self.store + a).status == 0)
                let done = try await stage.run(["store", "delete", "TEAM.app", "--yes"] + b)
                #expect(done.output == "Removed 2 keys of the store TEAM.app.\n")
                #expect(try await stage.run(["list", "--json"] + Self.store + a).output == "{}\n")
                let other = try await stage.run(["get", "k", "--store", "TEAM.other"] + a)
                #expect(other.status == 0)
                let again = try await stage.run(["store", "delete", "TEAM.app", "--yes"] + b)
                #expect(again.status == 1)
                try await server.stop()
                let offline = try await stage.run(["store", "delete", "TEAM.other", "--yes"] + a)
                #expect(offline.status == 69, "\(offline.errors)")
            }
        }

        @Test func `a watch of some keys prints what is there, and then their changes`()
            async throws
        {
            try await onStage { stage in
                let options = ["--home", stage.path("home")] + Self.store
                for key in ["a", "b", "c"] {
                    try await stage.run(["set", key, "1"] + options).expectSuccess()
                }
                let watch = try stage.start(
                    ["watch", "a", "c", "--initial", "--json", "--until", "c"] + options)
                try await until("the values at the beginning") {
                    watch.output.split(separator: "\n").count == 2
                }
                #expect(
                    watch.output == #"{"key":"a","value":"1","reason":"initial"}"# + "\n"
                        + #"{"key":"c","value":"1","reason":"initial"}"# + "\n")
                for key in ["b", "c"] {
                    try await stage.run(["set", key, "--integer", "2"] + options).expectSuccess()
                }
                #expect(try await watch.exit() == 0)
                let lines = watch.output.split(separator: "\n")
                #expect(lines.count == 3)
                #expect(lines.last == #"{"key":"c","value":2,"reason":"server"}"#)
            }
        }

        @Test func `a shell completes keys, stores, devices and accounts without a server`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("laptop", isFirst: true)
                let environment = ["UBIQUITY_HOME": home, "XDG_CACHE_HOME": stage.path("cache")]
                for key in ["theme", "them2", "other"] {
                    try await stage.run(["set", key, "1", "--home", home] + Self.store)
                        .expectSuccess()
                }
                try await stage.run(["remove", "them2", "--home", home] + Self.store)
                    .expectSuccess()
                try await stage.run(["device", "list", "--home", home]).expectSuccess()
                try await stage.run(
                    ["account", "list", "--data", server.data],
                    environment: environment
                ).expectSuccess()
                try await server.stop()
                let script = try await stage.succeed("--generate-completion-script", "bash")
                try script.write(toFile: stage.path("script"), atomically: true, encoding: .utf8)
                func offered(_ words: String...) async throws -> [String] {
                    let line = words.map { "'\($0)'" }.joined(separator: " ")
                    let shell = try stage.start(
                        [
                            "-c",
                            """
                            . "$1"; PATH="$2:$PATH"; COMP_WORDS=(ubiquity \(line)); \
                            COMP_CWORD=\(words.count); COMP_LINE="${COMP_WORDS[*]}"; \
                            COMP_POINT=${#COMP_LINE}; _ubiquity ubiquity "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"; \
                            printf '%s\\n' "${COMPREPLY[@]}"
                            """, "bash", stage.path("script"),
                            (try ProgramFile.ubiquity.path() as NSString).deletingLastPathComponent,
                        ], program: ProgramFile(path: "/bin/bash"),
                        environment: environment)
                    _ = try await shell.exit()
                    #expect(shell.errors.isEmpty, "\(shell.errors)")
                    return shell.output.split(separator: "\n").map(String.init)
                }
                #expect(try await offered("get", "--store", "TEAM.app", "th") == ["theme"])
                #expect(try await offered("get", "--store", "TE") == ["TEAM.app"])
                #expect(try await offered("device", "revoke", "la") == ["laptop"])
                #expect(try await offered("account", "code", "a") == ["ada"])
                #expect(try await offered("get", "--store", "TEAM.none", "th").isEmpty)
                let nowhere = try await offered(
                    "get", "--home", "/none", "--store", "TEAM.app", "t")
                #expect(nowhere.isEmpty && !FileManager.default.fileExists(atPath: "/none"))
            }
        }
    }
}
