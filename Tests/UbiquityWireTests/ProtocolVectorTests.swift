// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import UbiquityCore
import UbiquityWire

/// Protocol/vectors, which clients in other languages are tested with too.
@Suite struct `The vectors of the protocol` {
    @Test func `say the form, the size and the bytes of every value`() throws {
        let file = try Vectors("values.json")
        for vector in try file.cases() {
            let value = try value(vector["json"])
            let expected = try #require(Data(base64Encoded: vector.text("protobuf")))
            #expect(WireFormat.protobuf.encode(WireValue(value)) == [UInt8](expected))
            #expect(try PropertyListValue(protobuf: [UInt8](expected)) == value)
            #expect(try value.quotaBytes == vector.integer("quotaBytes"))
        }
        for vector in try file.cases("refused") {
            #expect(throws: WireError.self, "\(vector)") { try value(vector["json"]) }
        }
    }

    @Test func `say which of two contents is less`() throws {
        let contents = try Vectors("order.json").cases("ascending").map { vector in
            vector["deleted"] == nil ? Content.value(try value(vector.json)) : .deleted
        }
        for (index, content) in contents.enumerated() {
            for (other, later) in contents.enumerated() {
                #expect((content < later) == (index < other), "\(content), \(later)")
            }
        }
    }

    @Test func `say which keys fit which limit`() throws {
        for vector in try Vectors("keys.json").cases() {
            let key = try Key(vector.text("key"))
            #expect(try key.string.utf8.count == vector.integer("utf8Bytes"))
            #expect(try key.string.utf16.count == vector.integer("utf16Units"))
            for (limit, name) in [
                (KeyLimit.utf8Bytes(64), "fits64Bytes"), (.utf16Units(128), "fits128Units"),
            ] {
                let fits = (try? limit.check(key)) != nil
                #expect(try fits == vector.boolean(name), "\(key)")
            }
        }
    }

    @Test func `say which timestamp a write gets`() throws {
        for vector in try Vectors("timestamps.json").cases() {
            let now = try #require(Int64(vector.text("now")))
            let reading = ClockReading(wall: now, uptime: 0, boot: 1)
            var clock = DeviceClock(
                correction: ClockCorrection(reading: reading, serverMilliseconds: now))
            clock.observe(try timestamp(vector.vector("greatest")))
            let (issued, provisional) = clock.issue(at: reading)
            #expect(provisional == nil)
            #expect(try issued == timestamp(vector.vector("timestamp")))
        }
    }

    @Test func `say which pushes mean something, and which of their transactions are refused`()
        throws
    {
        let rule = PushAdmission(limits: StoreLimits(), now: 1_800_000_000_000)
        for vector in try Vectors("pushes.json").cases() {
            let body = [UInt8](try vector.text("body").utf8)
            let push = try? Push(
                WireFormat.json.decode(WirePush.self, from: body), author: DeviceID(rawValue: 1))
            #expect(try (push == nil) == (vector.integer("status") == 400), "\(vector)")
            guard let push else { continue }
            let results = try rule.decide(push, on: PushAdmission.Stored()).results.map {
                if case .refused(let refusal) = $0 { refusal.code } else { "committed" }
            }
            #expect(results == vector["results"] as? [String], "\(vector)")
        }
    }

    @Test func `say which of two writes wins`() throws {
        for vector in try Vectors("winners.json").cases() {
            let (winner, loser) = (try record(vector["winner"]), try record(vector["loser"]))
            #expect(winner.wins(over: loser) && !loser.wins(over: winner), "\(vector)")
            #expect(winner.merged(with: loser) == winner && loser.merged(with: winner) == winner)
        }
    }

    @Test func `say what the parts of a key make`() throws {
        for vector in try Vectors("parts.json").cases() {
            let records = try #require(vector["records"] as? [Any]).map(record)
            let expected = try vector["value"].map(value)
            for records in [records, records.reversed()] {
                #expect(records.visibleValues[try Key("k")] == expected, "\(vector)")
            }
        }
    }

    private func record(_ json: Any?) throws -> Record {
        let bytes = try JSONSerialization.data(withJSONObject: try #require(json))
        return try Record(WireFormat.json.decode(WireRecord.self, from: [UInt8](bytes)))
    }

    private func timestamp(_ vector: Vectors.Vector) throws -> HybridTimestamp {
        HybridTimestamp(
            milliseconds: try #require(Int64(vector.text("milliseconds"))),
            counter: try #require(UInt16(exactly: vector.integer("counter"))))
    }

    private func value(_ json: Any?) throws -> PropertyListValue {
        let bytes = try JSONSerialization.data(withJSONObject: try #require(json))
        return try PropertyListValue(WireFormat.json.decode(WireValue.self, from: [UInt8](bytes)))
    }
}

/// A file of Protocol/vectors.
private struct Vectors {
    private let content: [String: Any]

    init(_ name: String) throws {
        let file = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Protocol/vectors/\(name)")
        content = try #require(
            JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any])
    }

    func cases(_ list: String = "cases") throws -> [Vector] {
        let cases = try #require(content[list] as? [[String: Any]])
        try #require(!cases.isEmpty)
        return cases.map(Vector.init)
    }

    struct Vector {
        let json: [String: Any]

        subscript(name: String) -> Any? { json[name] }

        func text(_ name: String) throws -> String { try #require(json[name] as? String) }
        func integer(_ name: String) throws -> Int { try #require(json[name] as? Int) }
        func boolean(_ name: String) throws -> Bool { try #require(json[name] as? Bool) }
        func vector(_ name: String) throws -> Vector {
            Vector(json: try #require(json[name] as? [String: Any]))
        }
    }
}
