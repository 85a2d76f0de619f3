// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

/// Tests what a mirror knows about values and names besides the rule.
@Suite struct `What a mirror compares` {
    private static let values: [PropertyListValue] = [
        .string(""), .string("1"), .string("12345678"), .string("123456781"), .boolean(true),
        .boolean(false), .integer(0), .integer(1), .unsigned(.max), .real(0), .real(1), .date(0),
        .date(1), .data([]), .data([0]), .data([0, 0]), .data([49]), .array([]),
        .array([.integer(1)]), .array([.array([])]), .array([.integer(1), .integer(1)]),
        .dictionary([:]), .dictionary(["a": .integer(1)]), .dictionary(["b": .integer(1)]),
        .dictionary(["a": .integer(1), "b": .integer(1)]),
        .array([.string("a"), .integer(1)]), .string("e\u{301}"), .string("\u{e9}"),
    ]

    @Test func `gives different values different fingerprints, and equal ones the same`() {
        for (index, a) in Self.values.enumerated() {
            for (other, b) in Self.values.enumerated() {
                #expect((ValueFingerprint(a) == ValueFingerprint(b)) == (index == other))
            }
        }
    }

    @Test func `writes a fingerprint as bytes, and never another one`() {
        let fingerprint = ValueFingerprint(.string("theme"))
        #expect(fingerprint.bytes.count == ValueFingerprint.byteCount)
        #expect(ValueFingerprint(bytes: fingerprint.bytes) == fingerprint)
        #expect(ValueFingerprint(bytes: [1, 2]) == nil)
        // Kept on disks: another number here is a change of the format.
        let text = fingerprint.bytes.map { String($0, radix: 16) }.joined(separator: " ")
        #expect(text == "2d d0 fa ed 51 1b 9a 5a 7 2 ca d2 b7 2 10 ab")
    }

    @Test func `sees in a value what a preferences file keeps of it`() {
        let value = PropertyListValue.array([
            .date(1.75), .dictionary(["a": .date(-1.75), "b": .real(-0.0)]), .real(1.75),
        ])
        let kept = PropertyListValue.array([
            .date(1), .dictionary(["a": .date(-2), "b": .real(0)]), .real(1.75),
        ])
        #expect(value.preferencesForm == kept)
        #expect(kept.preferencesForm == kept)
        #expect(value.fitsPreferences)
        #expect(!PropertyListValue.array([.dictionary(["a": .date(.nan)])]).fitsPreferences)
    }

    @Test func `knows which numbers Foundation takes for one`() {
        let one: [PropertyListValue] = [.integer(1), .real(1)]
        for number in one {
            let others: [PropertyListValue] = [.boolean(true), .integer(2), .string("1")]
            for other in others { #expect(!number.looksEqual(to: other)) }
            for other in one {
                #expect(number.looksEqual(to: other))
                #expect(
                    PropertyListValue.array([.dictionary(["a": number])])
                        .looksEqual(to: .array([.dictionary(["a": other])])))
                #expect(
                    !PropertyListValue.array([.dictionary(["a": number])])
                        .looksEqual(to: .array([.dictionary(["b": other])])))
            }
        }
    }

    @Test func `never mirrors what is the system's or its own`() {
        for name in ["AppleLanguages", "NSWindow Frame", "AKLastIDMS", "com.apple.x", ""] {
            #expect(MirrorableNames.refusal(of: name) != nil)
        }
        #expect(MirrorableNames.refusal(of: MirrorableNames.bookkeeping + "theme") != nil)
        for name in ["theme", "apple", "level", "com.example.apple"] {
            #expect(MirrorableNames.refusal(of: name) == nil)
        }
    }
}
