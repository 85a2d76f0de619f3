// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import UbiquityCore

@testable import UbiquityWire

struct ElementCountTests {
    private let device = DeviceID(rawValue: 1)

    private func fits(
        _ bytes: [UInt8], _ format: WireFormat, _ type: any WireMessage.Type, max: Int
    ) -> Bool {
        bytes.withUnsafeBytes { ElementCount.fits($0, format, type, max: max) }
    }

    private func changes(_ values: [PropertyListValue]) throws -> [WireFormat: [UInt8]] {
        let stamp = Stamp(
            HybridTimestamp(milliseconds: 1_800_000_000_000, counter: 65_535), device,
            digest: .max)
        let records = try values.enumerated().map {
            Record(
                key: try Key(String(repeating: "\u{1}", count: 59) + "\($0)"),
                content: .value($1), stamp: stamp)
        }
        let wire = WireChanges(
            ChangeSet(
                records: records, cursor: Cursor("c")!, serverMilliseconds: 1, isWhole: true))
        return Dictionary(uniqueKeysWithValues: WireFormat.allCases.map { ($0, $0.encode(wire)) })
    }

    /// The bounds of a store are sums of its parts: what is true of a sixteenth of a full store, against
    /// a sixteenth of its bounds, is true of the whole.
    private static let share = 16
    private static let bytes = StoreLimits().storeBytesMax / share
    private static let bounds: MessageBounds = {
        let whole = IntakeLimits(StoreLimits()).message
        return MessageBounds(bytes: whole.bytes / share, elements: whole.elements / share)
    }()

    /// The values that need the most space for their size.
    private static let stores: [[PropertyListValue]] = {
        let wide = Dictionary(
            uniqueKeysWithValues: (0..<bytes / 16).map {
                (ExactString(String($0, radix: 36)), PropertyListValue.boolean(true))
            })
        let deep = (0..<400).reduce(PropertyListValue.array([])) { value, _ in .array([value]) }
        return [
            [.array(Array(repeating: .string(""), count: bytes / 8))],
            [.array(Array(repeating: .array([]), count: bytes / 8))],
            [.array(Array(repeating: .dictionary([:]), count: bytes / 8))],
            [.array(Array(repeating: .real(-1.234567890123456e-300), count: bytes / 16))],
            [.array(Array(repeating: .dictionary(["": .string("")]), count: bytes / 16))],
            [.dictionary(wide)], Array(repeating: deep, count: 300 / share),
            [.string(String(repeating: "\u{1}", count: bytes))],
            [.data(Array(repeating: 1, count: bytes))],
            Array(
                repeating: .string(String(repeating: "\u{1}", count: 1_024)), count: bytes / 1_024),
        ]
    }()

    @Test(arguments: 0..<10)
    func `a store that is full of anything is within the bounds of one`(_ number: Int) throws {
        let values = Self.stores[number]
        let used = values.reduce(0) { $0 + $1.quotaBytes }
        #expect(used <= Self.bytes)
        for (format, bytes) in try changes(values) {
            // Leaves the same again for parts and tombstones.
            #expect(bytes.count < Self.bounds.bytes / 2)
            #expect(fits(bytes, format, WireChanges.self, max: Self.bounds.elements * 3 / 4))
        }
    }

    @Test func `parts and tombstones of a full store are within its bounds`() throws {
        let stamp = Stamp(
            HybridTimestamp(milliseconds: 1_800_000_000_000, counter: 65_535), device,
            digest: .max)
        let key = try Key(String(repeating: "é", count: 32))
        let records = (0..<32_768 / Self.share).map { number in
            Record(
                key: key.part(PartID("c\(String(number, radix: 16))0123456789abcdef")!),
                content: number % 2 == 0
                    ? .deleted : .value(.array([.integer(.max), .integer(.max)])), stamp: stamp)
        }
        let wire = WireChanges(
            ChangeSet(
                records: records, cursor: Cursor("c")!, serverMilliseconds: 1, isWhole: false))
        for format in WireFormat.allCases {
            _ = try format.decode(
                WireChanges.self, from: format.encode(wire), within: Self.bounds)
        }
    }

    @Test func `two bytes that become an object are counted, wherever they stand`() {
        func nested(_ field: UInt8, _ content: [UInt8]) -> [UInt8] {
            var length = content.count
            var bytes = [field << 3 | 2]
            while length > 0x7F {
                bytes.append(UInt8(length & 0x7F) | 0x80)
                length >>= 7
            }
            return bytes + [UInt8(length)] + content
        }
        let many = (0..<1_000).flatMap { _ in nested(1, []) }
        let inArray = nested(1, nested(2, nested(8, many)))
        let inDictionary = nested(1, nested(2, nested(9, many)))
        let inEntry = nested(1, nested(2, nested(9, nested(1, nested(2, nested(8, many))))))
        for bytes in [many, inArray, inDictionary, inEntry] {
            #expect(!fits(bytes, .protobuf, WireChanges.self, max: 999))
            #expect(fits(bytes, .protobuf, WireChanges.self, max: 1_010))
        }
        let answer = nested(3, nested(1, many))
        #expect(!fits(answer, .protobuf, WirePushAnswer.self, max: 999))
        let superseded = nested(3, nested(1, nested(1, nested(2, nested(2, nested(8, many))))))
        #expect(!fits(superseded, .protobuf, WirePushAnswer.self, max: 999))
        #expect(
            !fits(
                nested(1, (0..<1_000).flatMap { _ in nested(6, []) }), .protobuf,
                WireDeviceList.self, max: 999)
        )
        // A text is a single element.
        #expect(fits(nested(2, many), .protobuf, WireChanges.self, max: 1))
    }

    /// Numbers above are not looked up.
    @Test func `no field of the protocol has a number above 15`() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Protocol/ubiquity.proto")
        let numbers = try String(contentsOf: file, encoding: .utf8).matches(of: /= (\d+);/)
            .compactMap { Int($0.output.1) }
        #expect(numbers.count > 100 && numbers.allSatisfy { (1...15).contains($0) })
    }

    /// A decoder skips these, whatever is in them.
    private static let skipped: [(any WireMessage.Type, [UInt8])] = [
        (WirePush.self, [0x7B, 0x0A, 0x01, 0x07, 0x7C]),
        (WirePush.self, [0x7B, 0x0A, 0x01, 0x09, 0x7C]),
        (WirePush.self, [0x7B, 0x0A, 0x01, 0x80, 0x7C]), (WirePushAnswer.self, [0x1A, 0x01, 0x80]),
        (WirePushAnswer.self, [0x1A, 0x02, 0x0A, 0x7F]),
    ]

    @Test(arguments: skipped)
    func `what a decoder skips does not hide what follows`(
        _ type: any WireMessage.Type, _ skipped: [UInt8]
    ) {
        let many: [UInt8] = Array(Array(repeating: [0x0A, 0x00], count: 1_000).joined())
        #expect(!fits(skipped + many, .protobuf, type, max: 999))
        #expect(fits(skipped + many, .protobuf, type, max: 1_010))
    }

    @Test func `a group does not hide what follows it`() {
        let group: [UInt8] = [0x7B, 0x7C] + Array(repeating: [0x0A, 0x00], count: 1_000).joined()
        #expect(!fits(group, .protobuf, WireChanges.self, max: 999))
        #expect(fits(group, .protobuf, WireChanges.self, max: 1_002))
    }

    @Test func `JSON's texts are one element, and its escapes are no ends`() {
        let text = #"{"a":"{[,\"{[,\\","b":[1,2,{}]}"#
        #expect(fits(Array(text.utf8), .json, WireChanges.self, max: 6))
        #expect(!fits(Array(text.utf8), .json, WireChanges.self, max: 5))
    }

    @Test func `what is beyond a bound is said`() {
        let bytes = Array(#"{"devices":[{},{},{}]}"#.utf8)
        for bounds in [
            MessageBounds(bytes: 10, elements: 100), MessageBounds(bytes: 100, elements: 6),
        ] {
            #expect(throws: WireError.self) {
                try WireFormat.json.decode(WireDeviceList.self, from: bytes, within: bounds)
            }
        }
        #expect(throws: Never.self) {
            try WireFormat.json.decode(
                WireDeviceList.self, from: bytes,
                within: MessageBounds(bytes: 100, elements: 7))
        }
    }
}
