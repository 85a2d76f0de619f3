// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore
import UbiquityWire

struct AccountFileTests {
    private let deepest = (1..<PropertyListValue.depthMax).reduce(PropertyListValue.array([])) {
        value, level in level.isMultiple(of: 2) ? .array([value]) : .dictionary(["k": value])
    }

    /// Values that a form is most likely to spoil, each under a key that JSON is.
    private var values: [Key: PropertyListValue] {
        get throws {
            [
                try Key("\u{0}\"\\]}"): .string("\u{0}\r\n\"]},{\\"),
                try Key("\u{E9}"): .real(-0.0), try Key("e\u{301}"): .real(.nan),
                try Key("greatest"): .unsigned(.max), try Key("whole"): .real(1),
                try Key("one"): .integer(1), try Key("true"): .boolean(true),
                try Key("date"): .date(800_000_000.123456), try Key("data"): .data([0, 255]),
                try Key("deepest"): deepest,
                try Key("folded"): .dictionary(["\u{E9}": .integer(1), "e\u{301}": .integer(2)]),
            ]
        }
    }

    private func file(
        _ stores: [(name: String, values: [Key: PropertyListValue])], history: Bool = false
    ) throws -> [UInt8] {
        var account = WireAccount()
        account.id = "0123456789abcdef"
        account.name = "Ada & \"Söhne\""
        account.devices = [WireDevice()]
        account.devices[0].name = "]}"
        var writer = AccountFileWriter()
        var bytes = writer.begin(account, madeMilliseconds: 1_800_000_000_000)
        for (name, values) in stores {
            bytes += writer.beginStore(try StoreIdentifier(name))
            for (key, value) in values { bytes += writer.record(key, value) }
            if history {
                bytes += writer.beginHistory()
                for (key, value) in values {
                    let stamp = Stamp(HybridTimestamp(milliseconds: 1), DeviceID(rawValue: 7))
                    bytes += writer.version(
                        RecordVersion(
                            record: Record(key: key, content: .value(value), stamp: stamp),
                            came: nil, outcome: .current))
                }
            }
            bytes += writer.endStore()
        }
        return bytes + writer.end()
    }

    private func read(
        _ bytes: some Collection<UInt8>, in size: Int = .max, keepsValues: Bool = true
    ) throws(AccountFileError) -> (name: String, stores: [AccountFileReader.Store]) {
        var reader = AccountFileReader(keepsValues: keepsValues)
        var (rest, stores) = (bytes[...], [AccountFileReader.Store]())
        while !rest.isEmpty {
            stores += try reader.take(rest.prefix(size))
            rest = rest.dropFirst(size)
        }
        try reader.finish()
        return (reader.accountName, stores)
    }

    @Test(arguments: [1, 7, Int.max], [false, true])
    func `a file gives every value back, in whatever pieces it comes`(
        _ size: Int, _ history: Bool
    ) throws {
        let values = try values
        let bytes = try file([("TEAM.a", values), ("b", [:]), ("c", values)], history: history)
        let (name, stores) = try read(bytes, in: size)
        #expect(name == "Ada & \"Söhne\"")
        #expect(stores.map(\.identifier.string) == ["TEAM.a", "b", "c"])
        for store in [stores[0], stores[2]] {
            #expect(
                store.entries
                    == Dictionary(uniqueKeysWithValues: values.map { ($0.key.name, $0.value) }))
        }
        #expect(stores[1].entries.isEmpty)
    }

    @Test func `a file that was cut off is never whole, wherever that was`() throws {
        let bytes = try file([("TEAM.a", [try Key("a"): .string("x")])], history: true)
        let end = try #require(bytes.lastIndex(of: UInt8(ascii: "}")))
        for count in 0...end {
            for keepsValues in [false, true] {
                let error = #expect(throws: AccountFileError.self, "\(count)") {
                    try read(bytes.prefix(count), keepsValues: keepsValues)
                }
                #expect(error == .incomplete || error == .notAccount, "\(count)")
            }
        }
    }

    @Test(
        arguments: [
            ("a.b", "c", AccountFileError.twice("c")), ("account-1", "account-2", .newer),
            ("\"format\"", "\"other\"", .notAccount),
            ("\"identifier\":\"a.b\"", "\"identifier\":\"/\"", nil),
            ("\"identifier\"", "\"id\"", nil),
            ("{\"string\":\"1\"}", "{\"sealed\":{\"generation\":1}}", nil),
            ("{\"string\":\"1\"}", "{}", nil), ("{\"string\":\"1\"}", "1", nil),
            ("\"records\":[", "\"records\":{", nil), ("\n{\"key\"", ",{\"key\"", nil),
            ("\"stores\"", "\"others\"", nil), ("\"account\":{", "\"account\":[{", nil),
        ] as [(String, String, AccountFileError?)])
    func `what is not as it was written is refused`(
        _ old: String, _ new: String, _ expected: AccountFileError?
    ) throws {
        let keys = [try Key("x"): PropertyListValue.string("1"), try Key("y"): .integer(2)]
        let text = String(decoding: try file([("a.b", keys), ("c", [:])]), as: UTF8.self)
        let parts = text.split(separator: old, maxSplits: 1, omittingEmptySubsequences: false)
        try #require(parts.count == 2)
        let error = #expect(throws: AccountFileError.self) {
            try read("\(parts[0])\(new)\(parts[1])".utf8)
        }
        if let expected { #expect(error == expected) }
    }

    @Test func `of the records of a key, the last one counts, which may be that it is gone`()
        throws
    {
        var writer = AccountFileWriter()
        var bytes = writer.begin(WireAccount(), madeMilliseconds: 1)
        bytes += writer.beginStore(try StoreIdentifier("a"))
        let (x, y, z) = (try Key("x"), try Key("y"), try Key("z"))
        for (key, value) in [(x, 1), (y, 2), (z, 3), (x, nil), (y, 4), (x, 5), (z, nil)]
            as [(Key, Int64?)]
        {
            bytes += writer.record(key, value.map { .integer($0) })
        }
        bytes += writer.endStore() + writer.end()
        let entries = try read(bytes).stores[0].entries
        #expect(entries == ["x": .integer(5), "y": .integer(4)])
    }

    @Test func `fields that are not known are ignored`() throws {
        let text = """
            { "format" : "ubiquity-account-1", "new": [{"a": "]}\\""}, 1.5e3 ], "x": null ,
              "stores": [ {"more": {"identifier": "no"}, "records": [], "identifier": "a"} ] }
            """
        #expect(try read(text.utf8).stores.map(\.identifier.string) == ["a"])
        #expect(AccountFileReader.isAccount(text.utf8))
        #expect(!AccountFileReader.isAccount("{\"a\": 1}".utf8))
    }

    @Test func `a store of more than may be in memory is refused before it is`() throws {
        let head = #"{"format":"ubiquity-account-1","stores":[{"identifier":"a","records":["#
        let record = #"{"key":"k","value":{"array":{"values":["#
        var reader = AccountFileReader()
        _ = try reader.take((head + record).utf8)
        let part = Array(String(repeating: #"{"boolean":true},"#, count: 1 << 16).utf8)
        let error = #expect(throws: AccountFileError.self) {
            for _ in 0..<32 { _ = try reader.take(part) }
        }
        #expect(error == .tooLarge("a store (a)"))
    }
}
