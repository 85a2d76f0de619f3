// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Ubiquity
internal import UbiquityCore
internal import UbiquityWire

extension Samples {
    static func propertyLists() throws -> [String: [UInt8]] {
        var lists: [String: [UInt8]] = [:]
        for (name, value) in values {
            let root = PropertyListValue.entries([key: value])
            lists["\(name)-xml"] = PropertyListXML.encode(root)
            lists["\(name)-binary"] = BinaryPropertyList.encode(root)
        }
        for (name, text) in otherTexts { lists[name] = Array(text.utf8) }
        lists["wide"] = [0xFE, 0xFF] + "{a=b;}".utf8.flatMap { [0, $0] }
        return lists
    }

    /// JSON, and forms that no program of ours writes.
    private static let otherTexts = [
        "openstep": """
        { a = b; "c d" = ( 1, two, <0a0B ff> ); /* no */ e = { f = "\\U00e9\\n"; }; }
        """,
        "strings": "\"one\" = \"eins\";\n// two\n\"two\" = \"zwei\";\n",
        "json": #"{"a": [1, -2.5e3, true, "\u00e9\ud83d\ude00"], "b": {"c": "d"}, "n": null}"#,
        "json-exact": """
        {"a": {"integer": "5"}, "b": {"real": "-0"}, "c": {"data": "aGk="}, "d": {"date": 0.5},
        "e": {"array": {"values": [{"dictionary": {"entries": [{"key": "k", "value": {"array": {}}}]}}]}}}
        """,
        "references": """
        <plist><dict><key>a</key><string>&#233;&amp;<![CDATA[<x>]]></string></dict></plist>
        """,
    ]

    static func storeFiles() throws -> [String: [UInt8]] {
        let sample = try StoreTrial.sample.get()
        return [
            "store": sample, "short": Array(sample.prefix(1_024)), "empty": [],
            "text": Array("this is no database, but a text that somebody put there".utf8),
        ]
    }

    static func rows() -> [String: [UInt8]] {
        var rows = values.mapValues { RowReader.bytes(of: [entry($0, pending: nil)]) }
        rows["pending"] = RowReader.bytes(of: [entry(.integer(1), pending: .boolean(true))])
        rows["refused"] = RowReader.bytes(of: [
            RowReader.Row(
                table: .refused,
                values: [
                    blob("k"), integer(1), integer(2), blob("x"), text("code"), text("why"),
                    integer(3),
                ])
        ])
        rows["meta"] = RowReader.bytes(of: [
            RowReader.Row(table: .meta, values: [integer(9), value(meta.fields)])
        ])
        return rows
    }

    private static var meta: StoredMeta {
        var meta = StoredMeta()
        meta.account = "0123456789abcdef"
        meta.cursor = cursor
        meta.hasCompletedFirstSync = true
        meta.correction = ClockCorrection(
            reading: ClockReading(wall: milliseconds, uptime: 1_000, boot: 1),
            serverMilliseconds: milliseconds + 5)
        meta.syncsRequested = 2
        meta.syncsCompleted = 1
        meta.syncFailures = [SyncFailure(1...2, LinkFailure(.unreachable, "no server answers"))]
        meta.link.state = .waiting
        meta.link.lastSync = milliseconds
        return meta
    }

    private static func entry(
        _ confirmed: PropertyListValue, pending: PropertyListValue?
    ) -> RowReader.Row {
        let time = integer(Int64(bitPattern: record(nil).stamp.timestamp.rawValue))
        var columns = [blob("k"), integer(2), time, integer(7), value(confirmed)]
        if let pending {
            columns += [time, integer(7), value(pending), integer(-1)]
            columns += [integer(milliseconds), integer(1_000), integer(1), time]
            columns += [integer(3), integer(4), time, integer(7), integer(1), integer(1)]
        } else {
            columns += Array(repeating: .null, count: 8) + [integer(3)]
            columns += Array(repeating: .null, count: 5)
        }
        return RowReader.Row(table: .entry, values: columns)
    }

    private static func value(_ value: PropertyListValue) -> DatabaseValue {
        Data(WireFormat.protobuf.encode(WireValue(value))).databaseValue
    }

    private static func blob(_ text: String) -> DatabaseValue { Data(text.utf8).databaseValue }
    private static func text(_ text: String) -> DatabaseValue { text.databaseValue }
    private static func integer(_ number: Int64) -> DatabaseValue { number.databaseValue }
}
