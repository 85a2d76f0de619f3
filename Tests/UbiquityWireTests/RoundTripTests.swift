// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore
import UbiquityWire

@Suite struct `A message in either form` {
    static let values: [PropertyListValue] = [
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

    @Test(arguments: WireFormat.allCases)
    func `carries 512 containers in one another, and refuses 513`(format: WireFormat) throws {
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
        let tooDeep = format.encode(WireValue(nested(PropertyListValue.depthMax + 1)))
        #expect(throws: WireError.self) {
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
        let stamp = Stamp(HybridTimestamp(milliseconds: 1_800_000_000_000, counter: 65_535), device)
        let record = Record(key: try Key("k"), content: .value(.integer(1)), stamp: stamp)
        let other = Record(
            key: try Key("d"), content: .deleted,
            stamp: Stamp(stamp.timestamp, DeviceID(rawValue: .max)))
        let push = Push([try Transaction([record, other])])
        let bytes = format.encode(WirePush(push, author: device))
        #expect(try Push(format.decode(WirePush.self, from: bytes), author: device) == push)
        let answer = PushAnswer(
            cursor: Position(epoch: 1, revision: 2).cursor, serverMilliseconds: 3,
            results: [
                .committed([.applied, .superseded(by: record), .olderThanForgotten]),
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
