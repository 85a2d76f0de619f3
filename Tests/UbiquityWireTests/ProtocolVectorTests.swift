// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import UbiquityCore
import UbiquityWire

/// Protocol/vectors, which clients in other languages are tested with too.
@Suite struct `The vectors of the protocol` {
    @Test func `say the form, the size and the bytes of every value`() throws {
        let file = try Vectors("values.json")
        for vector in try file.cases() + file.cases("sealed") {
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

    @Test func `say which files can be imported, and where the others are refused`() throws {
        let file = try Vectors("imports.json")
        for vector in try file.cases() {
            #expect(try imported(vector) == value(vector["value"]), "\(vector)")
        }
        for vector in try file.cases("refused") {
            let error = #expect(throws: PropertyListError.self, "\(vector)") {
                try imported(vector)
            }
            if let place = vector["place"] as? String {
                #expect(error?.description.hasSuffix("(\(place))") == true, "\(vector), \(error!)")
            }
        }
    }

    private func imported(_ vector: Vectors.Vector) throws -> PropertyListValue {
        if let text = vector["json"] as? String {
            var fault: UnsupportedValue?
            let root = try JSONValues.decode(Array(text.utf8)) { fault = $1 }
            if let fault { throw PropertyListError.unsupported(fault) }
            guard case .dictionary = root else { throw PropertyListError.unreadable("no object") }
            return root
        }
        let bytes =
            try (vector["xml"] as? String).map { Array($0.utf8) }
            ?? [UInt8](#require(Data(base64Encoded: vector.text("bytes"))))
        return try PropertyList.decode(bytes, depthMax: PropertyListValue.depthMax + 1)
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
            var store = StoreState()
            let committed = try store.admit(push, records: [:], folded: [], by: rule, in: 1)
            let results = committed.results.map {
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

    @Test func `say what writes and stores count`() throws {
        for vector in try Vectors("sizes.json").cases("pushes") {
            let transactions = try #require(vector["transactions"])
            let body = try JSONSerialization.data(withJSONObject: ["transactions": transactions])
            let push = try Push(
                WireFormat.json.decode(WirePush.self, from: [UInt8](body)),
                author: DeviceID(rawValue: 1))
            #expect(try push.bytes == vector.integer("bytes"), "\(vector)")
        }
        for vector in try Vectors("sizes.json").cases("stores") {
            var usage = Usage()
            for record in try records(vector["records"]) {
                usage.replace(nil, by: record.content.value, of: record.key)
            }
            let expected = Usage(
                bytes: try vector.integer("bytes"), keys: try vector.integer("keys"),
                parts: try vector.integer("parts"))
            #expect(usage == expected, "\(vector)")
        }
    }

    @Test func `say all codes of problems, with their statuses`() throws {
        let codes = try Vectors("problems.json").cases("codes")
        let known = ProblemCode.allCases
        #expect(try codes.map { try $0.text("code") }.sorted() == known.map(\.rawValue).sorted())
        for vector in codes {
            let code = try ProblemCode(rawValue: vector.text("code"))
            #expect(try code?.status == vector.integer("status"), "\(vector)")
        }
    }

    @Test func `say which texts are cursors`() throws {
        for vector in try Vectors("cursors.json").cases("texts") {
            #expect(try (Cursor(vector.text("text")) != nil) == vector.boolean("isCursor"))
        }
    }

    @Test func `say what a device has after it has received changes`() throws {
        for vector in try Vectors("cursors.json").cases() {
            var device = try CursorDevice(
                agreed: records(vector.vector("before")["agreed"]),
                waiting: records(vector.vector("before")["waiting"]),
                cursor: try vector.vector("before")["cursor"] as? String,
                firstSync: FirstSyncPolicy(rawValue: vector["firstSync"] as? String ?? ""))
            let first = device.open()
            var (stream, since) = try #require(first)
            #expect(try since?.text == vector.vector("before")["cursor"] as? String, "\(vector)")
            if let gone = (vector["gone"] as? String).flatMap(ProblemCode.init) {
                let kind = LinkFailure.Kind.cursorGone(isOtherHistory: gone == .cursorOtherHistory)
                device.handle(.streamEnded(stream, LinkFailure(kind, "gone")))
                let second = device.open()
                (stream, since) = try #require(second)
                #expect(since == nil, "\(vector)")
            }
            let changes = try JSONSerialization.data(withJSONObject: vector.vector("changes").json)
            device.handle(
                .streamReceived(
                    stream,
                    .changes(
                        try ChangeSet(
                            WireFormat.json.decode(WireChanges.self, from: [UInt8](changes))))))
            _ = device.open()
            let after = try vector.vector("after")
            #expect(device.agreed == Set(try records(after["agreed"])), "\(vector)")
            #expect(device.waiting == Set(try records(after["waiting"])), "\(vector)")
            #expect(try device.cursor?.text == after.text("cursor"), "\(vector)")
        }
    }

    private func records(_ list: Any?) throws -> [Record] {
        try #require(list as? [Any]).map(record)
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

/// A device with an engine, of which the disk keeps everything.
private struct CursorDevice {
    private var engine: SyncEngine
    private var disk: [Key: StoredEntry] = [:]
    private var version: Int64 = 1
    private(set) var cursor: Cursor?

    private static let now = ClockReading(wall: 1_800_000_000_000, uptime: 1_000, boot: 1)

    init(
        agreed: [Record], waiting: [Record], cursor: String?, firstSync: FirstSyncPolicy?
    ) throws {
        for record in agreed { disk[record.key] = StoredEntry(key: record.key, confirmed: record) }
        for (number, record) in waiting.enumerated() {
            disk[record.key, default: StoredEntry(key: record.key)].pending = PendingWrite(
                record: record, transaction: UInt64(number))
        }
        var meta = StoredMeta()
        meta.account = "ann"
        meta.cursor = try cursor.map { try #require(Cursor($0)) }
        meta.hasCompletedFirstSync = cursor != nil
        var settings = SyncEngine.Settings()
        settings.firstSync = firstSync ?? .serverWins
        let content = DiskChanges(version: version, entries: Array(disk.values), meta: meta)
        engine = SyncEngine(disk: content, settings: settings, seed: 1, at: Self.now)
        handle(.leading(true))
        handle(.signedIn(account: "ann", device: DeviceID(rawValue: 1)))
    }

    mutating func handle(_ event: SyncEngine.Event) { engine.handle(event, at: Self.now) }

    /// Saves, and returns the stream that it opens; nil if it opens none.
    mutating func open() -> (Int, since: Cursor?)? {
        while let effect = engine.nextEffect(at: Self.now) {
            switch effect {
            case .listen(let stream, let cursor, _): return (stream, cursor)
            case .save(let batch): save(batch)
            case .notify: handle(.notified)
            default: break
            }
        }
        return nil
    }

    private mutating func save(_ batch: SaveBatch) {
        for entry in batch.entries { disk[entry.key] = entry }
        cursor = batch.meta?.cursor ?? cursor
        version += 1
        handle(.saved(version: version))
    }

    var agreed: Set<Record> { Set(disk.values.compactMap(\.confirmed)) }
    var waiting: Set<Record> { Set(disk.values.compactMap(\.pending?.record)) }
}

/// A file of Protocol/vectors.
struct Vectors {
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
