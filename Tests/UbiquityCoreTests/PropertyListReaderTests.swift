// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

struct PropertyListReaderTests {
    private typealias LeftOut = [ExactString: UnsupportedValue]

    private func list(_ content: String) -> [UInt8] {
        Array(
            "<?xml version=\"1.0\"?>\n<plist version=\"1.0\"><dict>\n\(content)</dict></plist>".utf8
        )
    }

    private func read(
        _ bytes: [UInt8]
    ) throws -> (values: PropertyListValue, leftOut: LeftOut) {
        var leftOut: LeftOut = [:]
        let values = try PropertyList.decode(bytes, depthMax: 513) { leftOut[$0] = $1 }
        return (values, leftOut)
    }

    @Test(arguments: [
        ("<data>aGk</data>", "\"aGk\" is not data in base64"),
        ("<data>a===</data>", "base64"), ("<data>aGl=</data>", "base64"),
        ("<date>2024-13-45T99:99:99Z</date>", "is not a date"),
        ("<date>2023-02-29T00:00:00Z</date>", "is not a date"),
        ("<integer>18446744073709551616</integer>", "is not an integer"),
        ("<real>1e999</real>", "is not a real number"), ("<real>0x1p3</real>", "real number"),
        ("<true>no</true>", "is not empty"),
        ("<dict><key>a</key><true/><key>a</key><true/></dict>", "the key stands twice"),
    ])
    func `one bad entry is named with its line, and the others are read`(
        _ element: String, _ reason: String
    ) throws {
        let (values, leftOut) = try read(
            list("<key>a</key><true/>\n<key>bad</key>\(element)\n<key>c</key><true/>"))
        #expect(values == .dictionary(["a": .boolean(true), "c": .boolean(true)]))
        #expect(leftOut.keys.map(\.string) == ["bad"])
        let fault = try #require(leftOut["bad"])
        #expect(fault.sentence.contains(reason), "\(fault)")
        guard case .line(4, _)? = fault.place else {
            Issue.record("another place: \(fault)")
            return
        }
        let error = #expect(throws: PropertyListError.self) {
            try PropertyList.decode(list("<key>bad</key>\(element)"))
        }
        #expect(error?.description.hasPrefix(".bad") == true)
    }

    @Test func `of a key that stands twice none is taken, in both formats`() throws {
        let twice =
            "<key>k</key><true/><key>b</key><true/>\n<key>k</key><false/>\n<key>k</key><true/>"
        let (values, leftOut) = try read(list(twice))
        #expect(values == .dictionary(["b": .boolean(true)]))
        #expect(
            leftOut["k"]?.sentence == "the key stands twice in one dictionary (line 4, column 1)")
        let binary = BinaryPropertyListReaderTests.list([
            [0xD2, 1, 1, 2, 2], [0x51, 0x6B], [0x09],
        ])
        let (other, others) = try read(binary)
        #expect(other == .dictionary([:]))
        #expect(others["k"]?.sentence == "the key stands twice in one dictionary (byte 13)")
    }

    @Test(arguments: [
        ("<key>a</key><dict>", "</plist> where </dict> should be"), ("</dict>", "</dict> where"),
        ("<key>a</key>", "a key without a value"), ("<true/>", "a value without a key"),
        ("<key>a</key><string>&lol;</string>", "an entity"),
        ("<key>a</key><string>&#1;</string>", "an entity"),
        ("<key>a</key><string>a\u{1}</string>", "a character that XML does not have"),
        ("<key>a</key><string><b/></string>", "an element in <string>"),
        ("<key>a</key><set/>", "do not have: <set>"), ("text", "text outside of a value"),
        ("<key>a</key><array><key>b</key></array>", "a key outside of <dict>"),
        ("<key a=\"1\">a</key><true/>", "besides its name"), ("<!-- a -- b -->", "-- in a comment"),
        ("<key>a</key><string>a]]>b</string>", "]]> in a text"),
        ("<![CDATA[ ]]>", "markup that"), ("<!-- ", "a comment without end"),
        ("<key>a</key><string>", "where </string> should be"),
    ])
    func `what is not well-formed is refused with its line and column`(
        _ content: String, _ reason: String
    ) {
        let error = #expect(throws: PropertyListError.self) {
            try PropertyList.decode(list("\n\n" + content))
        }
        guard case .unreadable(let said, at: .line(let line, _)?)? = error else {
            Issue.record("another error: \(error as Any)")
            return
        }
        #expect(said.contains(reason), "\(said)")
        #expect(line == 5, "\(said)")
    }

    @Test func `bytes that are no text are refused, in keys too, with their place`() {
        for bytes in [[0x61, 0xFF], [0xC3], [0xED, 0xA0, 0x80]] as [[UInt8]] {
            for element in ["key", "string"] {
                let head = Array("<plist><dict>\n<\(element)>é".utf8)
                let error = #expect(throws: PropertyListError.self) {
                    try PropertyList.decode(head + bytes + Array("</\(element)>".utf8))
                }
                let column = element.count + 4 + (bytes.first == 0x61 ? 1 : 0)
                #expect(
                    error
                        == .unreadable(
                            "its bytes are not text in UTF-8", at: .line(2, column: column)))
            }
        }
        let binary = BinaryPropertyListReaderTests.list([[0xD1, 1, 2], [0x51, 0xE9], [0x09]])
        #expect(throws: PropertyListError.self) { try PropertyList.decode(binary) }
        let half = BinaryPropertyListReaderTests.list([
            [0xD1, 1, 2], [0x51, 0x61], [0x61, 0xD8, 0x00],
        ])
        #expect(throws: PropertyListError.self) { try PropertyList.decode(half) }
    }

    @Test func `XML in UTF-16 is read as in UTF-8`() throws {
        let text = "<plist><dict><key>é</key><string>😀</string></dict></plist>"
        let expected = PropertyListValue.dictionary(["é": .string("😀")])
        #expect(try PropertyList.decode(Array(text.utf8)) == expected)
        #expect(try PropertyList.decode([0xEF, 0xBB, 0xBF] + Array(text.utf8)) == expected)
        let units = Array(text.utf16)
        let big = units.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
        let little = units.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        #expect(try PropertyList.decode([0xFE, 0xFF] + big) == expected)
        #expect(try PropertyList.decode([0xFF, 0xFE] + little) == expected)
        #expect(throws: PropertyListError.self) {
            try PropertyList.decode([0xFF, 0xFE] + little.dropLast())
        }
    }

    @Test(arguments: [
        "{ a = 1; }", "{\n  \"b c\" = (1, 2);\n}", "(1, 2)", "\"one\" = \"eins\";", "// no\n{a=1;}",
    ])
    func `the old text format is named, with what to use instead`(_ text: String) {
        let error = #expect(throws: PropertyListError.self) {
            try PropertyList.decode(Array(text.utf8))
        }
        #expect(error?.description.contains("defaults export DOMAIN -") == true)
        #expect(!JSONValues.isJSON(Array(text.utf8)))
    }

    @Test func `a dictionary whose only key is CF$UID stays a dictionary`() throws {
        let root = PropertyListValue.dictionary(["k": .dictionary(["CF$UID": .integer(1)])])
        #expect(try PropertyList.decode(try #require(PropertyListXML.encode(root))) == root)
        #expect(try PropertyList.decode(BinaryPropertyList.encode(root)) == root)
    }

    @Test func `a value nests as deep as a store's, and no deeper`() throws {
        func nested(_ containers: Int) -> [UInt8] {
            let (begin, end) = ("<array>", "</array>")
            return list(
                "<key>k</key>" + String(repeating: begin, count: containers)
                    + String(repeating: end, count: containers) + "<key>b</key><true/>")
        }
        #expect(try read(nested(512)).leftOut.isEmpty)
        let (values, leftOut) = try read(nested(513))
        #expect(values == .dictionary(["b": .boolean(true)]))
        #expect(leftOut["k"]?.reason == PropertyListValue.depthRule)
        #expect(try read(nested(200_000)).leftOut.count == 1)
    }

    @Test func `a file with very many faults or values ends soon`() throws {
        let faults = (0..<50_000).map { "<key>\($0)</key><data>a</data>" }.joined()
        #expect(try read(list(faults)).leftOut.count == 50_000)
        let values = String(repeating: "<true/>", count: 1 << 20)
        let error = #expect(throws: PropertyListError.self) {
            try PropertyList.decode(list("<key>k</key><array>\(values)</array>"))
        }
        #expect(error?.description.contains("values") == true)
    }

    @Test func `no part of a text that is cut or spoilt ends the program`() throws {
        let whole = list(
            "<key>a&amp;</key><array><string>é&#x41;<![CDATA[<]]></string><data>aGk=</data>"
                + "<date>2026-11-21T10:00:00Z</date><integer>0xff</integer></array><!-- no -->")
        _ = try PropertyList.decode(whole)
        for count in whole.indices {
            #expect(throws: PropertyListError.self) {
                try PropertyList.decode(Array(whole.prefix(count)))
            }
            for byte: UInt8 in [0, 0x3C, 0x3E, 0x26, 0x2F, 0xFF] {
                var bytes = whole
                bytes[count] = byte
                _ = try? PropertyList.decode(bytes)
            }
        }
    }
}

enum BinaryPropertyListReaderTests {
    /// A binary list of these objects, the first being the root, with references of a byte.
    static func list(_ objects: [[UInt8]]) -> [UInt8] {
        var bytes = Array("bplist00".utf8)
        var offsets: [UInt8] = []
        for object in objects {
            offsets.append(UInt8(bytes.count))
            bytes += object
        }
        let table = bytes.count
        bytes += offsets + [0, 0, 0, 0, 0, 0, 1, 1]
        for number in [objects.count, 0, table] {
            bytes += (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * (7 - $0))) }
        }
        return bytes
    }
}
