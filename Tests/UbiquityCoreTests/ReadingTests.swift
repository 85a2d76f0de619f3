// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `Reading a value as another type` {
    @Test(arguments: [
        ("YES", true), ("true", true), ("1", true), ("y", true), ("  -07", true), ("T", true),
        ("no", false), ("", false), ("0", false), ("false", false), ("x1", false),
    ])
    func `takes a string's truth from its beginning`(string: String, expected: Bool) {
        #expect(PropertyListValue.string(string).asBool == expected)
    }

    @Test(arguments: [
        (PropertyListValue.real(1), true), (.real(0), false), (.real(-0.0), false),
        (.real(.nan), true), (.integer(-1), true), (.integer(0), false), (.boolean(true), true),
        (.unsigned(.max), true), (.data([1]), false), (.array([.integer(1)]), false),
        (.date(1), false), (.dictionary([:]), false),
    ])
    func `takes a number as true when it is not zero`(value: PropertyListValue, expected: Bool) {
        #expect(value.asBool == expected)
    }

    @Test(
        arguments: [
            (PropertyListValue.real(2.67), 2), (.real(-2.67), -2), (.string("123"), 123),
            (.string(" -12ab"), -12), (.string("+5"), 5), (.boolean(true), 1), (.string("abc"), 0),
            (.real(.nan), 0), (.real(.infinity), .max), (.real(-.infinity), .min),
            (.real(1e300), .max),
            (.real(9_223_372_036_854_775_808), .max), (.unsigned(.max), .max),
            (.string("99999999999999999999"), .max), (.string("-99999999999999999999"), .min),
            (.string("-9223372036854775808"), .min), (.data([1]), 0),
        ] as [(PropertyListValue, Int64)])
    func `cuts to an integer, and to its ends, and never traps`(
        value: PropertyListValue, expected: Int64
    ) {
        #expect(value.asInt64 == expected)
    }

    @Test(arguments: [
        (PropertyListValue.boolean(true), 1), (.integer(2), 2), (.string("123.4"), 123.4),
        (.string(" 1e3x"), 1_000), (.string("1e"), 1), (.string(".5"), 0.5), (.string("."), 0),
        (.string("abc"), 0), (.string("-2.5kg"), -2.5), (.array([]), 0),
    ])
    func `takes a real from the beginning of a string`(value: PropertyListValue, expected: Double) {
        #expect(value.asDouble == expected)
    }
}
