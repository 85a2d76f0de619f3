// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

struct JSONTextTests {
    @Test(
        arguments: [
            ("\"\"", .string("")), (" \"a\" ", .string("a")), ("true", .boolean(true)),
            ("false", .boolean(false)), ("0", .integer(0)), ("-0", .integer(0)),
            ("-9223372036854775808", .integer(.min)), ("9223372036854775808", .real(0x1p63)),
            ("1.0", .integer(1)), ("1.5e1", .integer(15)), ("-0.25E-1", .real(-0.025)),
            ("[]", .array([])), ("[ 1 , [2],null ]", .array([.integer(1), .array([.integer(2)])])),
            ("{}", .dictionary([:])),
            (
                "{\"a\": {\"b\" :1},\n\"c\":null}",
                .dictionary(["a": .dictionary(["b": .integer(1)])])
            ),
            ("{\"a\":1,\"a\":2}", .dictionary(["a": .integer(1)])),
            (
                "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\uDE80é🚀\"",
                .string("\"\\/\u{8}\u{C}\n\r\té🚀é🚀")
            ),
            ("\u{FEFF}[true]", .array([.boolean(true)])),
        ] as [(String, PropertyListValue)])
    func `a text is read as what it says`(_ text: String, _ value: PropertyListValue) throws {
        #expect(try JSONText.value(of: text.utf8) == value)
    }

    @Test func `a null is nothing`() throws {
        #expect(try JSONText.value(of: "null".utf8) == nil)
    }

    @Test(arguments: [
        "", " ", "{", "}", "[", "[1", "[1,", "[1,]", "[,1]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
        "{a:1}", "{1:1}", "tru", "nul", "True", "01", "-", "+1", "1.", ".5", "1e", "1e+", "1e999",
        "0x1", "\"", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\ud83d\"", "\"\\ude80\"",
        "\"\\ud83d\\u0041\"", "\"\n\"", "1 2", "[] x", "'a'", "NaN",
    ])
    func `a text that is not JSON is refused`(_ text: String) {
        #expect(throws: JSONError.self) { try JSONText.value(of: text.utf8) }
    }

    @Test func `bytes that are no UTF-8 are refused`() {
        #expect(throws: JSONError.self) { try JSONText.value(of: [0x22, 0xFF, 0x22]) }
    }

    @Test func `containers nest as deep as in any value, and no deeper`() throws {
        let max = PropertyListValue.depthMax
        let text = String(repeating: "[", count: max) + String(repeating: "]", count: max)
        #expect(try JSONText.value(of: text.utf8) != nil)
        #expect(throws: JSONError.self) { try JSONText.value(of: "[\(text)]".utf8) }
    }
}
