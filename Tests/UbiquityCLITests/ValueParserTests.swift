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

    @Test(arguments: ["2023-02-29T00:00:00Z", "2023-02-28T25:00:00Z", "2023-02-28"])
    func `a day or a time that there is not is refused`(text: String) {
        #expect(throws: Failure.self) { try ValueParser.date(text) }
    }

    @Test func `a property list and JSON are taken as they are written`() throws {
        let list = PropertyListValue.array([.integer(1), .string("a")])
        let xml = "<array><integer>1</integer><string>a</string></array>"
        #expect(try ValueParser.propertyList(xml) == list)
        #expect(try ValueParser.propertyList("<plist>\(xml)</plist>") == list)
        #expect(try ValueParser.json(#"[1,"a"]"#) == list)
        #expect(try ValueParser.json("1.0") == .real(1))
        let options = try ValueOptions.parse(["--json-value", #"{"a":1}"#])
        #expect(try options.parsed() == .dictionary(["a": .integer(1)]))
        let failure = #expect(throws: Failure.self) { try ValueParser.json("{\"a\":\nnul}") }
        #expect(failure?.sentence.contains("(line 2, column 1)") == true)
        let null = #expect(throws: Failure.self) { try ValueParser.json(#"{"a":[null]}"#) }
        #expect(null?.sentence.contains(".a[0]: null") == true)
        #expect(throws: Failure.self) { try ValueParser.propertyList("<data>aGk</data>") }
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
