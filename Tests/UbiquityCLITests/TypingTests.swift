// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Testing
import UbiquityCore

@testable import UbiquityCLI

/// Command lines of people who know other tools, or are in a hurry.
struct TypingTests {
    private func sentence(_ line: String) -> String {
        do {
            _ = try Program.parsed(line.split(separator: " ").map(String.init))
            return "it is accepted"
        } catch let failure as Failure {
            return failure.status == .usage ? failure.sentence : "\(failure)"
        } catch { return Program.message(for: error) }
    }

    @Test(arguments: [
        ("gett k", "get"), ("login", "sign-in"), ("ls", "list"), ("lst --json", "list"),
        ("rm k", "remove"), ("stat", "status"), ("Get k", "get"), ("sgin-in", "sign-in"),
        ("start", "serve"), ("log", "history"), ("users", "account list"),
        ("apps --json", "app list"), ("gett --help", "get"), ("help gett", "get"),
    ])
    func `the nearest command is suggested`(_ line: String, _ meant: String) {
        #expect(sentence(line).hasSuffix("did you mean `ubiquity \(meant)`?"), "\(sentence(line))")
    }

    @Test(arguments: [
        ("account ls", "account list"), ("account add ann", "account create"),
        ("account rm ann", "account delete"), ("device remove d", "device revoke"),
        ("app rm a", "app remove"), ("store ls", "store list"), ("help device lst", "device list"),
    ])
    func `the nearest subcommand is suggested`(_ line: String, _ meant: String) {
        #expect(sentence(line).hasSuffix("did you mean `ubiquity \(meant)`?"), "\(sentence(line))")
    }

    @Test(arguments: ["frobnicate", "help frobnicate", "frobnicate --help", "account frobnicate"])
    func `a word that is like no command is an error`(_ line: String) {
        let text = sentence(line)
        #expect(text.contains("there is no command") && text.contains("--help`"), "\(text)")
    }

    @Test(arguments: [
        ("set k --int 5", "--integer"), ("set k --float 5", "--real"), ("get k --jsonn", "--json"),
        ("set k -int 5", "--integer"), ("set k --boolean yes", "--bool"),
        ("history k --limt 5", "--limit"), ("sync --strore s", "--store"),
        ("list --domain d", "--store"), ("set k --strng=x", "--string"),
    ])
    func `the nearest option is suggested`(_ line: String, _ meant: String) {
        #expect(sentence(line).hasSuffix("did you mean \(meant)?"), "\(sentence(line))")
    }

    @Test func `an option that is like no other is an error that says where to look`() {
        #expect(
            sentence("get k --frobnicate")
                == "`ubiquity get` has no option --frobnicate; see `ubiquity get --help`")
        #expect(sentence("get -5").hasSuffix("begins with a dash: -- -5"), "\(sentence("get -5"))")
    }

    @Test func `what is far from all words is suggested for none`() {
        #expect(Spelling.nearest(to: "xyz", among: ["get", "set"]) == nil)
        #expect(Spelling.nearest(to: "", among: ["get", "set"]) == nil)
        #expect(
            Spelling.nearest(to: "TEAM.note", among: ["TEAM.app", "TEAM.notes"]) == "TEAM.notes")
        let long = String(repeating: "get", count: 100_000)
        #expect(Spelling.nearest(to: long, among: ["get"]) == nil)
    }

    @Test(arguments: [
        ("", "abc", 3), ("abc", "abc", 0), ("abc", "acb", 1), ("kitten", "sitting", 3),
        ("ab", "", 2),
    ])
    func `a distance counts insertions, removals, replacements and swaps`(
        _ a: String, _ b: String, _ count: Int
    ) {
        #expect(Spelling.distance(a, b) == count)
        #expect(Spelling.distance(b, a) == count)
    }

    @Test(arguments: ["set k --array a --x 5", "set k --array -int 5", "set k --dict a --local=b"])
    func `an option among elements is an error`(_ line: String) {
        #expect(throws: (any Error).self) { try value(line) }
    }

    private func value(_ line: String) throws -> PropertyListValue {
        let command = try Program.parsed(line.split(separator: " ").map(String.init))
        return try #require(command as? SetCommand).value.parsed()
    }

    @Test(
        arguments: [
            ("set k -5", .string("-5")), ("set k -.5 --local", .string("-.5")),
            ("set k --integer -5", .integer(-5)), ("set k --real -2.5 --local", .real(-2.5)),
            ("set k --string -5", .string("-5")), ("set -- k -5", .string("-5")),
            (
                "set k --array 1 -2 --integer -3",
                .array([.string("1"), .string("-2"), .integer(-3)])
            ),
        ] as [(String, PropertyListValue)])
    func `a number below zero is a value`(_ line: String, _ expected: PropertyListValue) throws {
        #expect(try value(line) == expected)
    }

    @Test(arguments: [
        ("history --limit -3", "--limit must be a number from 1 to 100000"),
        ("watch --count -1", "--count must be at least 1"),
        ("serve --port -1", "--port needs a number from 0 to 65535"),
        ("serve --keys-max -1", "it needs a whole number from 1 to"),
        ("sync --timeout -1", "--timeout needs a number of seconds above 0"),
        ("account code ann --credential-days -3", "--credential-days needs a number from 1"),
    ])
    func `a number below zero is no limit`(_ line: String, _ reason: String) {
        #expect(sentence(line).contains(reason), "\(sentence(line))")
    }

    @Test func `options may follow elements`() throws {
        let line = ["set", "k", "--array", "a", "b", "--store", "S", "--local", "--json"]
        let command = try #require(try Program.parsed(line) as? SetCommand)
        #expect(try command.value.parsed() == .array([.string("a"), .string("b")]))
        #expect(command.store.store == "S" && command.sync.local && command.json.isOn)
        #expect(try value("set k --array") == .array([]))
        #expect(try value("set k --dict --local") == .dictionary([:]))
        #expect(try value("set k --string --array") == .string("--array"))
    }

    // MARK: - The words of `defaults`

    @Test(arguments: [
        ("read TEAM.app theme", "get theme --store TEAM.app"), ("read", "list"),
        ("read TEAM.app", "list --store TEAM.app"), ("read theme", "get theme"),
        ("read com.x --store TEAM.app", "get com.x --store TEAM.app"),
        ("write TEAM.app k v", "set k --store TEAM.app v"),
        ("write TEAM.app k -int -5", "set k --store TEAM.app --integer -5"),
        ("write TEAM.app k -bool YES --local", "set k --store TEAM.app --bool YES --local"),
        ("write TEAM.app k -float 1.5", "set k --store TEAM.app --real 1.5"),
        ("write TEAM.app k -string @x", "set k --store TEAM.app @x"),
        ("write TEAM.app k -", "set k --store TEAM.app --string -"),
        ("write TEAM.app k -data <6869>", "set k --store TEAM.app --data aGk="),
        ("write TEAM.app k -array a -int 1", "set k --store TEAM.app --array a --integer 1"),
        ("write TEAM.app k -dict a 1", "set k --store TEAM.app --dict a 1"),
        ("write TEAM.app k <true/>", "set k --store TEAM.app --plist <true/>"),
        ("write TEAM.app k -string (1)", "set k --store TEAM.app --string (1)"),
        (
            "write TEAM.app k -array <true/> -string (1)",
            "set k --store TEAM.app --array --plist <true/> --string (1)"
        ),
        ("write k v", "set k v"), ("write k --integer 5", "set k --integer 5"),
        ("write k v --store TEAM.app", "set k v --store TEAM.app"),
        ("delete TEAM.app k", "remove k --store TEAM.app"), ("delete k", "remove k"),
        ("delete TEAM.app", "store delete TEAM.app"),
        ("delete a b --store TEAM.app", "remove a b --store TEAM.app"),
        ("stores", "store list"), ("stores --json", "store list --json"),
        ("domains --local", "store list --local"), ("write --help", "set --help"),
        ("get read", "get read"),
    ])
    func `the words of defaults are understood`(_ line: String, _ own: String) throws {
        let words = try DefaultsWords.translated(line.split(separator: " ").map(String.init))
        #expect(words.joined(separator: " ") == own)
        #expect(throws: Never.self) {
            do { _ = try Program.parsed(words) } catch {
                // A request for help is an error to the argument parser.
                if !own.hasSuffix("--help") { throw error }
            }
        }
    }

    @Test(arguments: [
        "write TEAM.app k -array-add a", "write TEAM.app k -data 686", "write TEAM.app k (1,2,3)",
        "write TEAM.app k {a=1;}", "write TEAM.app k -array a (1)",
        "write TEAM.app k -dict a {b=1;}",
    ])
    func `what defaults can do and this program cannot is an error`(_ line: String) {
        #expect(throws: Failure.self) {
            try DefaultsWords.translated(line.split(separator: " ").map(String.init))
        }
    }

    @Test(arguments: ["NAME", "TEAM.com.example.app", "app.old", "values.json"])
    func `an export does not take for a file what may be a store`(_ word: String) throws {
        let error = #expect(throws: (any Error).self) { try Program.parsed(["export", word]) }
        let message = try Program.message(for: #require(error))
        #expect(
            message.contains(word.hasSuffix("json") ? "--json > " : "--store \(word)"), "\(message)"
        )
        for file in ["./\(word)", "values.plist", "VALUES.XML", "-"] where file != "./values.json" {
            #expect(throws: Never.self) { _ = try Program.parsed(["export", file]) }
        }
    }

    // MARK: - Completions

    @Test func `completions begin as the word does, and are a bounded number`() {
        let names = (0..<5_000).map { "key \($0)" } + ["other", "a\u{1B}[2J", "a:b"]
        #expect(Completions.offered(names, "key", isZsh: false).count == 1_000)
        #expect(Completions.offered(names, "a", isZsh: false) == ["a:b"])
        #expect(Completions.offered(names, "a", isZsh: true) == ["a\\:b"])
        #expect(Completions.offered(names, "x", isZsh: false).isEmpty)
    }

    @Test func `a line's options say which store's keys are completed`() {
        let line = ["ubiquity", "get", "--store", "a", "--store=b", "--home"]
        #expect(CompletionPlace.value(of: "--store", in: line) == "b")
        #expect(CompletionPlace.value(of: "--home", in: line) == nil)
    }
}
