// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Values that a form is most likely to spoil, by a name.
enum Samples {
    static let values: [String: PropertyListValue] = [
        "string": .string("é👩🏽‍🚀<&>\"'"), "empty": .string(""), "blanks": .string("  a\n\tb  "),
        "controls": .string("\u{0}\u{1}\r\n"), "true": .boolean(true), "false": .boolean(false),
        "zero": .integer(0), "byte": .integer(255), "short": .integer(256),
        "word": .integer(65_536), "long": .integer(4_294_967_296), "negative": .integer(-1),
        "least": .integer(.min), "greatest": .integer(.max), "unsigned": .unsigned(.max),
        "above": .unsigned(UInt64(Int64.max) + 1), "real": .real(0.1), "minus": .real(-0.0),
        "nan": .real(.nan), "infinity": .real(.infinity), "below": .real(-.infinity),
        "tiny": .real(.leastNonzeroMagnitude), "huge": .real(.greatestFiniteMagnitude),
        "whole": .real(1), "date": .date(800_000_000), "fraction": .date(800_000_000.123456),
        "old": .date(-63_113_904_000), "never": .date(.infinity), "data": .data([0, 255, 10]),
        "nothing": .data([]), "large": .data(Array(repeating: 7, count: 70_000)),
        "array": .array([.boolean(false), .integer(0), .real(0), .array([])]),
        "dictionary": .dictionary(["": .data([]), "inner": .dictionary(["k": .string("v")])]),
        "folded": .dictionary(["\u{E9}": .integer(1), "e\u{301}": .integer(2)]),
        "deepest": deepest, "many": .array((0..<300).map { .integer($0) }),
    ]

    static let deepest = (1..<PropertyListValue.depthMax).reduce(PropertyListValue.array([])) {
        value, level in level.isMultiple(of: 2) ? .array([value]) : .dictionary(["k": value])
    }
}
