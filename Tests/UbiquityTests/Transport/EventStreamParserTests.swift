// SPDX-License-Identifier: Apache-2.0

import Testing
import Ubiquity
import UbiquityWire

struct EventStreamParserTests {
    typealias Event = StreamEvent

    private func event(_ data: String, name: String = "message") -> Event {
        Event(name: name, data: Array(data.utf8))
    }

    private func parse(_ pieces: [UInt8]...) throws -> [Event] {
        var parser = EventStreamParser(eventBytesMax: 1 << 20)
        return try pieces.flatMap { try parser.consume($0) }
    }

    /// Checks the events of the whole text, of each split into two parts, and of single bytes.
    private func check(_ text: String, gives expected: [Event]) throws {
        let bytes = Array(text.utf8)
        #expect(try parse(bytes) == expected)
        for split in 0...bytes.count {
            #expect(
                try parse(Array(bytes[..<split]), Array(bytes[split...])) == expected,
                "split at \(split)")
        }
        var parser = EventStreamParser(eventBytesMax: 1 << 20)
        #expect(try bytes.flatMap { try parser.consume([$0]) } == expected)
    }

    @Test(arguments: ["\n", "\r\n", "\r"])
    func `an event has a name and data, whatever ends the lines`(_ end: String) throws {
        let text = ["id: 1-2", "event: changes", "data: {\"a\":1}", "", "data:x", "", ""]
        try check(
            text.joined(separator: end),
            gives: [event("{\"a\":1}", name: "changes"), event("x")])
    }

    @Test func `lines of data are joined, and lose one space each`() throws {
        try check("data: a\ndata:  b\ndata\ndata:\n\n", gives: [event("a\n b\n\n")])
    }

    @Test func `comments and unknown fields are passed over`() throws {
        try check(
            ": alive\n\n:\nretry: 5\nfoo\nfoo: bar\ndatax: no\ndata: a\n:\n\n", gives: [event("a")])
    }

    @Test func `a byte order mark is passed over, at the beginning only`() throws {
        try check("\u{FEFF}data: a\n\n\u{FEFF}data: b\n\n", gives: [event("a")])
    }

    @Test func `an event without data is ignored, and its name is forgotten`() throws {
        try check("event: ready\nid: 7\n\ndata: a\n\n", gives: [event("a")])
    }

    @Test func `what the stream ends within is dropped`() throws {
        try check("data: a\n\ndata: b\n", gives: [event("a")])
        try check("data: a", gives: [])
    }

    @Test func `characters of several bytes survive every split`() throws {
        try check("data: 👩🏽‍🚀é\n\nevent: é\ndata: ü\n\n", gives: [event("👩🏽‍🚀é"), event("ü", name: "é")])
    }

    @Test func `a mixture of line ends is read as the standard says`() throws {
        try check(
            "data: a\r\n\rdata: b\n\r\ndata: c\r\r", gives: [event("a"), event("b"), event("c")])
    }

    @Test func `an event as large as allowed passes, and one byte more is refused`() throws {
        for split in [1, 10, 1_000] {
            var parser = EventStreamParser(eventBytesMax: 100)
            // Its line has the field's name and the colon too.
            let fits = Array("data:\(String(repeating: "x", count: 95))\n\n".utf8)
            let pieces = stride(from: 0, to: fits.count, by: split).map {
                Array(fits[$0..<min($0 + split, fits.count)])
            }
            #expect(try pieces.flatMap { try parser.consume($0) }.count == 1)
            #expect(throws: WireError.self) {
                try parser.consume(Array("data:\(String(repeating: "x", count: 96))".utf8))
            }
        }
    }

    @Test func `many small lines of one event are bounded together`() throws {
        var parser = EventStreamParser(eventBytesMax: 100)
        #expect(throws: WireError.self) {
            for _ in 0..<100 { _ = try parser.consume(Array("data:x\n".utf8)) }
        }
    }
}

extension EventStreamParser {
    fileprivate mutating func consume(_ bytes: [UInt8]) throws -> [StreamEvent] {
        try bytes.withUnsafeBytes { try consume($0) }
    }
}
