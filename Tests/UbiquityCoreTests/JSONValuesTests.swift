// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

struct JSONValuesTests {
    private func read(
        _ text: String
    ) throws -> (values: PropertyListValue, leftOut: [ExactString: UnsupportedValue]) {
        var leftOut: [ExactString: UnsupportedValue] = [:]
        let values = try JSONValues.decode(Array(text.utf8)) { leftOut[$0] = $1 }
        return (values, leftOut)
    }

    @Test func `integers stay integers, and reals reals`() throws {
        let text = #"""
            {"a": 1, "b": 1.0, "c": -0.0, "d": 18446744073709551615, "e": 1e3, "f": [true, {"g": ""}],
             "least": -9223372036854775808, "text": "é😀\n\u00e9\ud83d\ude00"}
            """#
        #expect(
            try read(text).values
                == .dictionary([
                    "a": .integer(1), "b": .real(1), "c": .real(-0.0), "d": .unsigned(.max),
                    "e": .real(1_000), "least": .integer(.min),
                    "f": .array([.boolean(true), .dictionary(["g": .string("")])]),
                    "text": .string("é😀\n\u{E9}😀"),
                ]))
    }

    @Test func `the exact form gives every type back`() throws {
        let text = """
            {"s": {"string": "x"}, "b": {"boolean": false}, "i": {"integer": "-5"},
             "u": {"unsigned": "18446744073709551615"}, "r": {"real": 1}, "n": {"real": "NaN"},
             "z": {"real": "-0"}, "t": {"date": 816948000.25}, "d": {"data": "aGk="},
             "a": {"array": {"values": [{"integer": "1"}, {"array": {}}]}},
             "m": {"dictionary": {"entries": [{"key": "k", "value": {"real": 2.5}},
                                              {"value": {"dictionary": {}}}]}}}
            """
        #expect(
            try read(text).values
                == .dictionary([
                    "s": .string("x"), "b": .boolean(false), "i": .integer(-5),
                    "u": .unsigned(.max), "r": .real(1), "n": .real(.nan), "z": .real(-0.0),
                    "t": .date(816_948_000.25), "d": .data([0x68, 0x69]),
                    "a": .array([.integer(1), .array([])]),
                    "m": .dictionary(["k": .real(2.5), "": .dictionary([:])]),
                ]))
    }

    @Test(arguments: [
        ("null", "null is not a value"), ("1e999", "too large"),
        ("18446744073709551616", "more than 64 bits"), (#""\ud800""#, "surrogate"),
        (#"{"x": 1, "x": 2}"#, "stands twice"), ("[1, [null]]", "null"),
    ])
    func `one bad entry is named with its line, and the others are read`(
        _ value: String, _ reason: String
    ) throws {
        let (values, leftOut) = try read("{\"a\": 1,\n \"bad\": \(value),\n \"c\": 2}")
        #expect(values == .dictionary(["a": .integer(1), "c": .integer(2)]))
        let fault = try #require(leftOut["bad"])
        #expect(fault.sentence.contains(reason) && fault.sentence.contains("(line 2, "), "\(fault)")
    }

    @Test func `a value that is not of the exact form is named, where the others are`() throws {
        let (values, leftOut) = try read(
            #"{"a": {"integer": "5"}, "b": {"integer": "x"}, "c": {"array": {"value": []}}}"#)
        #expect(values == .dictionary(["a": .integer(5)]))
        #expect(leftOut.keys.map(\.string).sorted() == ["b", "c"])
        #expect(leftOut["b"]?.place == .line(1, column: 25))
    }

    @Test func `a sealed value is refused, which only its devices can read`() throws {
        let (values, leftOut) = try read(
            #"{"a": {"sealed": {"generation": 1, "box": "AQ=="}}, "b": {"integer": "1"}}"#)
        #expect(values == .dictionary(["b": .integer(1)]))
        #expect(leftOut["a"]?.reason.hasPrefix("a sealed value") == true, "\(leftOut)")
    }

    @Test func `a key that stands twice is refused, and so is its first value`() throws {
        let (values, leftOut) = try read("{\"k\": 1, \"b\": 2,\n\"k\": 3}")
        #expect(values == .dictionary(["b": .integer(2)]))
        #expect(
            leftOut["k"]?.sentence == "the key stands twice in one dictionary (line 2, column 1)")
    }

    @Test(arguments: [
        "", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,}", "[1,]", "{a:1}", "{\"a\":01}",
        "{\"a\":1.}", "{\"a\":.5}", "{\"a\":+1}", "{\"a\":tru}", "{\"a\":NaN}", "{\"a\":1} 2",
        "{\"a\":\"\\x\"}", "{\"a\":\"\\u12\"}", "{\"a\":\"\\u-000\"}", "{\"a\":\"b\nc\"}", "[1 2]",
        "{\"a\":1]", "{\"a\":\"", "{\"\\ud800\":1}", "{,}", "{\"a\" 1}",
    ])
    func `what is not JSON is refused with its place`(_ text: String) {
        let error = #expect(throws: PropertyListError.self) { try read(text) }
        guard case .unreadable(_, at: .line(_, _)?)? = error else {
            Issue.record("another error: \(error as Any)")
            return
        }
    }

    @Test func `a value nests as deep as a store's in either form, and no deeper`() throws {
        func exact(_ containers: Int) -> String {
            String(repeating: #"{"dictionary":{"entries":[{"key":"k","value":"#, count: containers)
                + #"{"integer":"1"}"# + String(repeating: "}]}}", count: containers)
        }
        #expect(try read("{\"k\": \(exact(511))}").leftOut.isEmpty)
        #expect(try read("{\"k\": \(exact(512))}").leftOut.count == 1)
        func plain(_ containers: Int) -> String {
            String(repeating: "[", count: containers) + String(repeating: "]", count: containers)
        }
        #expect(try read("{\"k\": \(plain(512))}").leftOut.isEmpty)
        #expect(try read("{\"k\": \(plain(513))}").leftOut.count == 1)
        #expect(try read("{\"k\": \(plain(100_000)), \"b\": 1}").leftOut.count == 1)
    }
}
