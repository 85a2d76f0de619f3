// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Testing
import UbiquityCore

@testable import UbiquityCLI

struct ValueParserTests {
    @Test func `integers from the least to the greatest of a property list are taken`() throws {
        #expect(try ValueParser.integer("-9223372036854775808") == .integer(.min))
        #expect(try ValueParser.integer("9223372036854775807") == .integer(.max))
        #expect(try ValueParser.integer("18446744073709551615") == .unsigned(.max))
    }

    @Test(arguments: ["", "5.0", "0x10", "18446744073709551616", "-9223372036854775809", " 5"])
    func `a text that is not a whole number in range is refused`(text: String) {
        let failure = #expect(throws: Failure.self) { try ValueParser.integer(text) }
        #expect(failure?.status == .badInput)
    }

    @Test func `a real number may be infinite only if it says so`() throws {
        #expect(try ValueParser.real("-inf") == .real(-.infinity))
        #expect(try ValueParser.real("nan") == .real(.nan))
        #expect(throws: Failure.self) { try ValueParser.real("1e999") }
    }

    @Test func `data is base64 text`() throws {
        #expect(try ValueParser.data("aGk=") == .data([0x68, 0x69]))
        #expect(try ValueParser.data("") == .data([]))
        #expect(throws: Failure.self) { try ValueParser.data("a%") }
    }

    @Test func `a file that is not there is named`() {
        let failure = #expect(throws: Failure.self) { try ValueParser.data("@/no/such/file") }
        #expect(failure == Failure(.noInput, "there is no file /no/such/file"))
    }

    @Test func `two values at once are refused, and so is no value`() {
        #expect(throws: (any Error).self) { try ValueOptions.parse(["a", "--integer", "5"]) }
        #expect(throws: (any Error).self) { try ValueOptions.parse([]) }
    }

    @Test func `a number may begin with a minus`() throws {
        let options = try ValueOptions.parse(["--integer", "-5"])
        #expect(try options.parsed() == .integer(-5))
    }

    @Test func `a text is read from a file, without its last line end`() throws {
        let file = NSTemporaryDirectory() + "ubiquity-text-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: file) }
        func text(_ bytes: [UInt8]) throws -> PropertyListValue {
            try Data(bytes).write(to: URL(fileURLWithPath: file))
            return try ValueParser.text("@" + file)
        }
        #expect(try text(Array("a\nb\n\n".utf8)) == .string("a\nb\n"))
        #expect(try text(Array("a".utf8)) == .string("a"))
        #expect(try text([]) == .string(""))
        #expect(try ValueParser.word("@" + file) == .string("@" + file))
        let failure = #expect(throws: Failure.self) { try text([0xFF]) }
        #expect(failure?.sentence.contains("is not text in UTF-8; use --data @FILE") ?? false)
    }

    @Test func `a text of more than the bound is refused`() throws {
        let failure = #expect(throws: Failure.self) { try ValueParser.text("@/dev/zero") }
        #expect(failure?.status == .badInput)
    }
}

struct ElementListTests {
    @Test func `an element is a string, or of the type before it`() throws {
        let words = ["a", "--integer", "-5", "-6", "--bool", "yes", "--string", "--b", "@c"]
        #expect(
            try ElementList.array(words)
                == .array([
                    .string("a"), .integer(-5), .string("-6"), .boolean(true), .string("--b"),
                    .string("@c"),
                ]))
        #expect(try ElementList.array([ElementList.noElements]) == .array([]))
    }

    @Test func `a dictionary has keys and values in turn`() throws {
        #expect(
            try ElementList.dictionary(["name", "Ann", "age", "--integer", "5"])
                == .dictionary(["name": .string("Ann"), "age": .integer(5)]))
        #expect(try ElementList.dictionary([ElementList.noElements]) == .dictionary([:]))
    }

    @Test(arguments: [
        ["a"], ["a", "b", "c"], ["a", "--integer"], ["a", "1", "a", "2"], ["--x", "1"],
        ["a", "-int"],
    ])
    func `a dictionary that is none is refused`(_ words: [String]) {
        let failure = #expect(throws: Failure.self) { try ElementList.dictionary(words) }
        #expect(failure?.status == .usage)
    }
}

struct DateTextTests {
    @Test(arguments: [
        ("2001-01-01T00:00:00Z", 0), ("2001-01-01T01:00:00+01:00", 0),
        ("2001-01-01T00:00:00.25Z", 0.25), ("2026-11-21T10:00:00.123456Z", 816_948_000.123456),
        ("1969-07-20T20:17:40.5Z", -992_490_139.5),
    ])
    func `times of ISO 8601 are read with all their digits`(text: String, seconds: Double) {
        #expect(DateText.seconds(of: text) == seconds)
    }

    @Test(arguments: ["", "2026-11-21", "10:00", "2026-13-01T00:00:00Z", "2026-11-21T10:00:00"])
    func `a text that is not a time with a zone is not read`(text: String) {
        #expect(DateText.seconds(of: text) == nil)
    }

    @Test(arguments: [0, 0.1, 816_948_000.123456, 1e9 + 0.5, -0.25, -992_490_139.5, 1 / 3.0])
    func `what is printed reads as the same time`(seconds: Double) {
        #expect(DateText.seconds(of: DateText.text(of: seconds)) == seconds)
    }

    @Test func `a date outside of the calendar is printed as a number`() {
        #expect(DateText.text(of: .infinity) == "inf s after 2001-01-01T00:00:00Z")
        #expect(DateText.text(of: .nan) == "nan s after 2001-01-01T00:00:00Z")
    }
}
