// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `Values and keys` {
    @Test func `keep true, 1 and 1.0 apart, and a zero from its negative`() {
        let values: [PropertyListValue] = [
            .boolean(true), .integer(1), .real(1), .date(1), .string("1"), .real(0), .real(-0.0),
        ]
        for (i, a) in values.enumerated() {
            for (j, b) in values.enumerated() {
                #expect((a == b) == (i == j))
                #expect((a < b || b < a) == (i != j))
            }
        }
    }

    @Test func `are equal only if all of their bytes are, however many there are`() {
        for count in 0...80 {
            let bytes = Array(repeating: UInt8(ascii: "k"), count: count)
            let text = ExactString(String(decoding: bytes, as: UTF8.self))
            #expect(text == ExactString(String(repeating: "k", count: count)))
            for index in bytes.indices {
                var other = bytes
                other[index] = UInt8(ascii: "l")
                #expect(text != ExactString(String(decoding: other, as: UTF8.self)))
            }
        }
        #expect(ExactString("\u{212B}") != ExactString("A\u{30A}"))
    }

    @Test func `that nest 512 deep are compared in no time, and differ by their innermost leaf`() {
        func nested(_ leaf: Int64) -> PropertyListValue {
            var value = PropertyListValue.integer(leaf)
            for level in 1..<PropertyListValue.depthMax {
                value = level.isMultiple(of: 2) ? .array([value]) : .dictionary(["k": value])
            }
            return value
        }
        #expect(nested(1) < nested(2))
        #expect(!(nested(2) < nested(1)))
        #expect(!(nested(1) < nested(1)))
        #expect(nested(1) == nested(1))
    }

    @Test func `of which one begins like the other are ordered by length`() {
        #expect(PropertyListValue.array([.integer(1)]) < .array([.integer(1), .integer(0)]))
        #expect(PropertyListValue.data([1, 2]) < .data([1, 3]))
        #expect(PropertyListValue.dictionary(["a": .integer(1)]) < .dictionary(["b": .integer(0)]))
        #expect(PropertyListValue.dictionary([:]) < .dictionary(["a": .integer(0)]))
    }

    @Test
    func
        `that are sealed are greater than others, by generation and bytes, and no types of an app's`()
    {
        let boxes = [(1, []), (1, [9]), (1, [9, 0]), (2, [1])].map {
            PropertyListValue.sealed(SealedBox(generation: $0.0, bytes: $0.1))
        }
        for (index, box) in boxes.enumerated() {
            #expect(PropertyListValue.dictionary(["a": .integer(1)]) < box)
            for (other, later) in boxes.enumerated() {
                #expect((box < later) == (index < other) && (box == later) == (index == other))
            }
            #expect(box.asInt64 == 0 && box.asDouble == 0 && !box.asBool && box.quotaBytes == 0)
            #expect(PropertyListXML.encode(.dictionary(["a": box])) == nil)
            #expect(!box.fitsPreferences && Number(box) == nil && ComparableValue(box) == nil)
        }
    }

    @Test func `have one NaN, which equals itself`() {
        let nan = PropertyListValue.real(PropertyListValue.canonical(-Double.nan))
        #expect(nan == .real(.nan))
    }

    @Test func `do not fold Unicode normalisation forms, in keys, strings and dictionaries`() throws
    {
        let (composed, decomposed) = ("\u{E9}", "e\u{301}")
        #expect(composed == decomposed)
        #expect(try Key(composed) != Key(decomposed))
        #expect(PropertyListValue.string(composed) != .string(decomposed))
        let dictionary: [ExactString: PropertyListValue] = [
            ExactString(composed): .integer(1), ExactString(decomposed): .integer(2),
        ]
        #expect(dictionary.count == 2)
    }

    @Test func `count by what they hold and by how many they are, whatever their encoding`() {
        let value = PropertyListValue.dictionary([
            "ab": .array([.integer(1), .real(2), .date(3), .boolean(true), .unsigned(.max)]),
            "é": .data([1, 2, 3]),
        ])
        #expect(value.quotaBytes == 2 * 8 + 2 + 5 * 8 + 8 * 4 + 1 + 2 + 3)
        #expect(PropertyListValue.array([.array([]), .string("")]).quotaBytes == 16)
        #expect(PropertyListValue.string("é").quotaBytes == 2)
    }

    @Test func `that are keys have at most 64 bytes, or 128 units with the other setting`() throws {
        let bytes = KeyLimit.utf8Bytes(64)
        try bytes.check(Key(String(repeating: "k", count: 64)))
        #expect(throws: KeyError.tooLong(bytes)) {
            try bytes.check(Key(String(repeating: "k", count: 65)))
        }
        #expect(throws: KeyError.tooLong(bytes)) {
            try bytes.check(Key(String(repeating: "字", count: 22)))
        }
        try KeyLimit.utf16Units(128).check(Key(String(repeating: "字", count: 128)))
        #expect(throws: KeyError.empty) { try Key("") }
    }

    @Test func `that name a store are safe in an address and as a file`() throws {
        _ = try StoreIdentifier("TEAMID.com.example.app-1_x")
        for bad in [
            "", ".", "..", ".hidden", "a/b", "a b", "é", String(repeating: "a", count: 256),
        ] {
            #expect(throws: StoreIdentifierError.self) { try StoreIdentifier(bad) }
        }
    }

    @Test func `merge by the three laws`() throws {
        let key = try Key("k")
        let contents: [Content] = [.deleted, .value(.integer(1)), .value(.string("x"))]
        var records: [Record] = []
        for time in 1...2 as ClosedRange<UInt64> {
            for device in 1...2 as ClosedRange<UInt64> {
                for content in contents {
                    let stamp = Stamp(
                        HybridTimestamp(rawValue: time), DeviceID(rawValue: device))
                    records.append(Record(key: key, content: content, stamp: stamp))
                }
            }
        }
        for a in records {
            #expect(a.merged(with: a) == a)
            for b in records {
                #expect(a.merged(with: b) == b.merged(with: a))
                for c in records {
                    #expect(a.merged(with: b).merged(with: c) == a.merged(with: b.merged(with: c)))
                }
            }
        }
    }
}
