// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Testing
import UbiquityCore

@testable import UbiquityCLI

/// Command lines that the argument parser alone would read in another way.
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
        "gett k", "account frobnicate", "get k --jsonn", "set k -int 5", "read TEAM.app theme",
    ])
    func `a word that this program does not have is an error`(_ line: String) {
        #expect(sentence(line) != "it is accepted")
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
