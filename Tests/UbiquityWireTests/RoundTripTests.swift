// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore
import UbiquityWire

@Suite struct `A message in either form` {
    static let values: [PropertyListValue] =
        leaves + [
            .sealed(SealedBox(generation: 0, bytes: [])),
            .sealed(SealedBox(generation: .max, bytes: [1, 2, 255])),
        ]

    private static let leaves: [PropertyListValue] = [
        .string(""), .string("é e\u{301} \u{1F600}\n\"\\\u{0}"), .boolean(true), .boolean(false),
        .integer(.min), .integer(.max), .integer(0), .unsigned(.max), .real(0), .real(-0.0),
        .real(.nan), .real(.infinity), .real(-.infinity), .real(0.1), .real(.leastNonzeroMagnitude),
        .real(.greatestFiniteMagnitude), .date(1.000_000_1), .date(-.infinity), .data([]),
        .data([UInt8](0...255)), .array([]), .dictionary([:]),
        .dictionary(["\u{1F600}": .array([.boolean(true), .integer(1), .real(1)]), "": .data([0])]),
        .dictionary([
            ExactString("\u{E9}"): .integer(1), ExactString("e\u{301}"): .integer(2),
        ]),
    ]

    @Test(arguments: WireFormat.allCases, values)
    func `keeps type and bits of a value`(format: WireFormat, value: PropertyListValue) throws {
        let bytes = format.encode(WireValue(value))
        #expect(try PropertyListValue(format.decode(WireValue.self, from: bytes)) == value)
    }

    @Test func `has in protobuf the bytes of the value's canonical form`() throws {
        for value in Self.leaves + [
            .array(Self.leaves), .array(Array(repeating: .data([]), count: 99)),
        ] {
            let bytes = WireFormat.protobuf.encode(WireValue(value))
            #expect(CanonicalForm.encode(value) == bytes)
            var elements = 100
            #expect(try CanonicalForm.decode(bytes, within: &elements) == value)
        }
    }

    @Test(arguments: WireFormat.allCases)
    func `can be made record by record`(format: WireFormat) throws {
        let records = Self.values.prefix(4).enumerated().map { number, value in
            Record(
                key: try! Key("k\(number)"), content: number == 2 ? .deleted : .value(value),
                stamp: Stamp(HybridTimestamp(milliseconds: 5), DeviceID(rawValue: 7), digest: 9))
        }
        for count in 0...4 {
            var changes = ChangeSet(
                records: [], cursor: Cursor("1-1")!, serverMilliseconds: 6, isWhole: true)
            var encoder = WireListEncoder(format)
            var bytes = records.prefix(count).flatMap { encoder.encode($0) }
            bytes += encoder.end(changes)
            changes.records = Array(records.prefix(count))
            #expect(bytes == format.encode(WireChanges(changes)))
        }
    }

    /// Every value, cut off early, with a byte of its beginning changed, and with bytes after its end.
    @Test func `is read in the short way as in the long one, or refused as there`() throws {
        func check(_ bytes: [UInt8]) {
            let short = Result { () throws(WireError) in try PropertyListValue(protobuf: bytes) }
            let long = Result { () throws(WireError) in
                try PropertyListValue(WireFormat.protobuf.decode(WireValue.self, from: bytes))
            }
            // An expectation each would take most of the time.
            if short != long { Issue.record("\(bytes.prefix(20)): \(short), but \(long)") }
        }
        let strings = [127, 128, 16_384].map {
            PropertyListValue.string(String(repeating: "x", count: $0))
        }
        for value in Self.values + strings {
            let bytes = WireFormat.protobuf.encode(WireValue(value))
            let starts = 0...min(bytes.count, 8)
            for end in starts { check(Array(bytes[..<end])) }
            for index in starts.dropLast() {
                for byte: UInt8 in [0, 1, 2, 7, 8, 10, 18, 0x61, 0x7F, 0x80, 0x81, 0xC0, 0xFF] {
                    var changed = bytes
                    changed[index] = byte
                    check(changed)
                }
            }
            check(bytes + [0])
            check(bytes + bytes)
        }
        // A length in more bytes than it needs, and one too long for a message.
        check([10, 0x81, 0x80, 0, 0x61])
        check([10, 0x81, 0x80, 0x80, 0x80, 0, 0x61])
        check([10, 0xFF, 0xFF, 0xFF, 0x7F])
    }

    @Test(arguments: WireFormat.allCases)
    func `carries a value of 512 levels, and says of 513 what is so`(format: WireFormat) throws {
        func nested(_ depth: Int) -> PropertyListValue {
            var value = PropertyListValue.integer(1)
            for level in 1..<depth {
                value = level.isMultiple(of: 2) ? .array([value]) : .dictionary(["k": value])
            }
            return value
        }
        let deep = nested(PropertyListValue.depthMax)
        let bytes = format.encode(WireValue(deep))
        #expect(try PropertyListValue(format.decode(WireValue.self, from: bytes)) == deep)
        var empty = PropertyListValue.array([])
        for _ in 1..<PropertyListValue.depthMax { empty = .array([empty]) }
        #expect(
            try PropertyListValue(
                format.decode(WireValue.self, from: format.encode(WireValue(empty)))) == empty)
        let tooDeep = format.encode(WireValue(nested(PropertyListValue.depthMax + 1)))
        let rule = "a value nests at most 512 levels: 511 containers, and what is in them"
        #expect(throws: WireError(rule)) {
            try PropertyListValue(format.decode(WireValue.self, from: tooDeep))
        }
    }

    @Test(arguments: WireFormat.allCases)
    func `has equal bytes for equal values`(format: WireFormat) {
        let keys = (0..<50).map { ExactString("key\($0)") }
        let forward = PropertyListValue.dictionary(
            Dictionary(uniqueKeysWithValues: keys.map { ($0, .integer(1)) }))
        let backward = PropertyListValue.dictionary(
            Dictionary(uniqueKeysWithValues: keys.reversed().map { ($0, .integer(1)) }))
        #expect(format.encode(WireValue(forward)) == format.encode(WireValue(backward)))
    }

    @Test(arguments: WireFormat.allCases)
    func `carries a push and its answer`(format: WireFormat) throws {
        let device = DeviceID(rawValue: 7)
        let stamp = Stamp(
            HybridTimestamp(milliseconds: 1_800_000_000_000, counter: 65_535), device,
            digest: .max)
        let record = Record(key: try Key("k\0k"), content: .value(.integer(1)), stamp: stamp)
        let other = Record(
            key: try Key("d"), content: .deleted,
            stamp: Stamp(stamp.timestamp, DeviceID(rawValue: .max)))
        var part = record
        part.key = record.key.part(try #require(PartID("d\u{0}é")))
        let had = [other.key: other.stamp.withoutDigest]
        let transaction = try Transaction([record, other, part], had: had)
        for tellsHad in [true, false] {
            let push = Push(
                [transaction], tellsHad: tellsHad,
                saved: tellsHad ? Cursor("0123456789abcdef-7") : nil)
            let bytes = format.encode(WirePush(push, author: device))
            #expect(try Push(format.decode(WirePush.self, from: bytes), author: device) == push)
        }
        let answer = PushAnswer(
            cursor: Position(epoch: 1, revision: 2).cursor, serverMilliseconds: 3,
            results: [
                .committed([.applied, .superseded(by: record), .olderThanCompacted]),
                .refused(Refusal(code: "quota-bytes", detail: "too much")),
            ])
        let answerBytes = format.encode(WirePushAnswer(answer))
        #expect(try PushAnswer(format.decode(WirePushAnswer.self, from: answerBytes)) == answer)
    }

    @Test(arguments: [
        "", "[]", "{", "{\"transactions\":[{}]}", "{\"transactions\":[{\"writes\":[{}]}]}",
        "{\"transactions\":[{\"writes\":[{\"key\":\"\",\"deleted\":true,\"milliseconds\":\"1\"}]}]}",
        "{\"transactions\":[{\"writes\":[{\"key\":\"a\",\"milliseconds\":\"1\"}]}]}",
        "{\"transactions\":[{\"writes\":[{\"key\":\"a\",\"deleted\":true}]}]}",
        "{\"transactions\":[{\"writes\":[{\"key\":\"a\",\"value\":{},\"milliseconds\":\"1\"}]}]}",
        "{\"transactions\":[{\"writes\":[{\"key\":\"a\",\"deleted\":true,\"milliseconds\":\"1\",\"counter\":65536}]}]}",
        "{\"transactions\":[{\"writes\":[{\"key\":\"a\",\"deleted\":true,\"milliseconds\":\"1\",\"had\":{}}]}]}",
        "{\"transactions\":[{\"writes\":[{\"key\":\"a\",\"deleted\":true,\"milliseconds\":\"1\",\"device\":\"x\"}]}]}",
    ])
    func `that means nothing is refused with a sentence`(json: String) {
        let error = #expect(throws: WireError.self) {
            try Push(
                WireFormat.json.decode(WirePush.self, from: Array(json.utf8)),
                author: DeviceID(rawValue: 1))
        }
        #expect(error?.description.isEmpty == false)
    }

    @Test func `passes over fields that it does not know`() throws {
        let json = "{\"cursor\":\"a-1\",\"fromTheFuture\":{\"x\":1}}"
        let changes = try WireFormat.json.decode(WireChanges.self, from: Array(json.utf8))
        #expect(changes.cursor == "a-1")
    }

    @Test func `names its form by media type, parameters and case aside`() {
        #expect(WireFormat(mediaType: "Application/JSON; charset=utf-8") == .json)
        #expect(WireFormat(mediaType: "application/x-protobuf") == .protobuf)
        #expect(WireFormat(mediaType: "text/plain") == nil)
    }
}
