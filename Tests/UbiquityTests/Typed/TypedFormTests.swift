// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Ubiquity
import UbiquityCore

/// Tests the stored form of an app's types, which other languages read, and that they come back
/// as they were.
struct TypedFormTests {
    private func expect<Value: Codable & Equatable>(
        _ value: Value, is stored: PropertyListValue, _ location: SourceLocation = #_sourceLocation
    ) throws {
        #expect(try TypedValue.encode(value) == stored, sourceLocation: location)
        #expect(
            try TypedValue.decode(stored, as: Value.self) == value, sourceLocation: location)
        // The same where it is a part of something.
        #expect(
            try TypedValue.encode([[value]]) == .array([.array([stored])]),
            sourceLocation: location)
        #expect(
            try TypedValue.decode(.dictionary(["a": stored]), as: [String: Value].self)["a"]
                == value, sourceLocation: location)
    }

    @Test func `a Bool, text, dates and data are themselves`() throws {
        try expect(true, is: .boolean(true))
        try expect("", is: .string(""))
        try expect("$null", is: .string("$null"))
        try expect("a\0b 👩‍👩‍👧 e\u{301}", is: .string("a\0b 👩‍👩‍👧 e\u{301}"))
        try expect(Date(timeIntervalSinceReferenceDate: 0.1 + 0.2), is: .date(0.1 + 0.2))
        try expect(Date.distantPast, is: .date(Date.distantPast.timeIntervalSinceReferenceDate))
        try expect(Data([1, 255]), is: .data([1, 255]))
        try expect(Data(), is: .data([]))
        #expect(try TypedValue.encode(Data([1, 2, 3])[1...]) == .data([2, 3]))
    }

    @Test func `integers of every type are integers, up to the greatest of 64 bits`() throws {
        try expect(1, is: .integer(1))
        try expect(Int8.min, is: .integer(-128))
        try expect(Int16.max, is: .integer(32_767))
        try expect(Int32.min, is: .integer(-2_147_483_648))
        try expect(Int64.min, is: .integer(.min))
        try expect(Int64.max, is: .integer(.max))
        try expect(UInt8.max, is: .integer(255))
        try expect(UInt16.max, is: .integer(65_535))
        try expect(UInt32.max, is: .integer(4_294_967_295))
        try expect(UInt(7), is: .integer(7))
        try expect(UInt64(Int64.max), is: .integer(.max))
        try expect(UInt64(Int64.max) + 1, is: .unsigned(1 << 63))
        try expect(UInt64.max, is: .unsigned(.max))
    }

    @Test func `reals are reals, whole ones too`() throws {
        try expect(1.0, is: .real(1))
        try expect(0.1 + 0.2, is: .real(0.1 + 0.2))
        try expect(-Double.infinity, is: .real(-.infinity))
        try expect(Double.leastNonzeroMagnitude, is: .real(.leastNonzeroMagnitude))
        try expect(Float(0.1), is: .real(Double(Float(0.1))))
        try expect(Float.infinity, is: .real(.infinity))
        try expect(CGFloat(2), is: .real(2))
        #expect(try TypedValue.encode(-0.0) == .real(-0.0))
        #expect(try TypedValue.decode(.real(-0.0), as: Double.self).sign == .minus)
    }

    @Test func `every NaN is the store's NaN`() throws {
        let other = Double(nan: 5, signaling: false)
        #expect(try TypedValue.encode(-other) == .real(.nan))
        #expect(
            try TypedValue.encode(["a": [Float.nan]]) == .dictionary(["a": .array([.real(.nan)])]))
        #expect(
            try TypedValue.encode(Date(timeIntervalSinceReferenceDate: -other)) == .date(.nan))
        #expect(try TypedValue.decode(.real(.nan), as: Double.self).isNaN)
        #expect(try TypedValue.decode(.array([.real(.nan)]), as: [Float].self)[0].isNaN)
    }

    @Test func `addresses, identifiers and decimals are text`() throws {
        let url = try #require(URL(string: "https://example.com/a%20b?c=d#e"))
        try expect(url, is: .string("https://example.com/a%20b?c=d#e"))
        let text = "E621E1F8-C36C-495A-93FC-0C247A3E6E5F"
        try expect(try #require(UUID(uuidString: text)), is: .string(text))
        try expect(try #require(Decimal(string: "-12.50")), is: .string("-12.5"))
        try expect(Decimal.nan, is: .string("NaN"))
        let long = "12345678901234567890.123456789012345678"
        try expect(try #require(Decimal(string: long)), is: .string(long))
        for extreme in [Decimal.greatestFiniteMagnitude, .leastNonzeroMagnitude, 0] {
            try expect(extreme, is: .string(extreme.description))
        }
    }

    @Test func `an address relative to another comes back absolute`() throws {
        let base = try #require(URL(string: "https://example.com/a/"))
        let stored = try TypedValue.encode(try #require(URL(string: "b", relativeTo: base)))
        #expect(stored == .string("https://example.com/a/b"))
    }

    private enum Colour: String, Codable { case red, green }
    private enum Level: Int, Codable { case low = 1, high }
    private enum Shape: Codable, Hashable {
        case point
        case circle(Double)
        case line(from: Int, to: Int?)
    }

    @Test func `an enum is its raw value, or a dictionary with the name of its case`() throws {
        try expect(Colour.red, is: .string("red"))
        try expect(Level.high, is: .integer(2))
        try expect(Shape.point, is: .dictionary(["point": .dictionary([:])]))
        try expect(Shape.circle(1), is: .dictionary(["circle": .dictionary(["_0": .real(1)])]))
        try expect(
            Shape.line(from: 1, to: 2),
            is: .dictionary(["line": .dictionary(["from": .integer(1), "to": .integer(2)])]))
        try expect(
            Shape.line(from: 1, to: nil),
            is: .dictionary(["line": .dictionary(["from": .integer(1)])]))
    }

    private struct Game: Codable, Equatable {
        var name = "chess"
        var level = 3
        var isOver = false
        var score = 2.0
        var start = Date(timeIntervalSinceReferenceDate: 0.5)
        var board = Data([1])
        var moves: [String] = []
        var best: [String: Int] = [:]
        var opponent: String?
        var colour: Colour? = .green
        var home: URL?
    }

    @Test func `a struct is a dictionary, without what is nil`() throws {
        try expect(
            Game(),
            is: .dictionary([
                "name": .string("chess"), "level": .integer(3), "isOver": .boolean(false),
                "score": .real(2), "start": .date(0.5), "board": .data([1]), "moves": .array([]),
                "best": .dictionary([:]), "colour": .string("green"),
            ]))
    }

    private struct Empty: Codable, Equatable {}

    @Test func `what is empty stays what it is`() throws {
        try expect([Int](), is: .array([]))
        try expect([String: Int](), is: .dictionary([:]))
        try expect(Set<String>(), is: .array([]))
        try expect([Int: Int](), is: .dictionary([:]))
        try expect(Empty(), is: .dictionary([:]))
    }

    @Test func `sets, and dictionaries without a form of their own, are stored in one order`()
        throws
    {
        try expect(Set((1...9).reversed()), is: .array((1...9).map { .integer($0) }))
        try expect(
            [Shape.circle(2): 2, .circle(1): 1],
            is: .array([
                .dictionary(["circle": .dictionary(["_0": .real(1)])]), .integer(1),
                .dictionary(["circle": .dictionary(["_0": .real(2)])]), .integer(2),
            ]))
        let numbers = Dictionary(uniqueKeysWithValues: (UInt8(0)...9).map { ($0, true) })
        try expect(
            numbers, is: .array((0...9).flatMap { [.integer($0), .boolean(true)] }))
    }

    @Test func `a dictionary whose keys become strings is a dictionary`() throws {
        try expect([1: "a", -2: "b"], is: .dictionary(["1": .string("a"), "-2": .string("b")]))
        try expect(
            [Colour.red: 1, .green: 2], is: .dictionary(["red": .integer(1), "green": .integer(2)]))
        let id = UUID()
        try expect(
            [id: [id: 1]],
            is: .dictionary([
                ExactString(id.uuidString): .dictionary([ExactString(id.uuidString): .integer(1)])
            ]))
        try expect([Colour: Int](), is: .dictionary([:]))
        #expect(try TypedValue.decode(.array([]), as: [Colour: Int].self).isEmpty)
    }

    private class Animal: Codable {
        var legs = 4
    }

    private final class Dog: Animal {
        var name = "Rex"
        private enum CodingKeys: CodingKey { case name }

        override init() { super.init() }

        required init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            name = try container.decode(String.self, forKey: .name)
            try super.init(from: container.superDecoder())
        }

        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try super.encode(to: container.superEncoder())
            try container.encode(name, forKey: .name)
        }
    }

    @Test func `a class keeps what it inherits`() throws {
        let dog = Dog()
        dog.legs = 3
        let stored = try #require(try TypedValue.encode(dog))
        #expect(
            stored
                == .dictionary([
                    "name": .string("Rex"), "super": .dictionary(["legs": .integer(3)]),
                ]
                ))
        #expect(try TypedValue.decode(stored, as: Dog.self).legs == 3)
    }

    /// Describes itself by containers within containers, and leaves one of them before the other.
    private struct Nested: Codable, Equatable {
        var x = 1
        private enum CodingKeys: CodingKey { case list, inner }

        init() {}

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            var list = try container.nestedUnkeyedContainer(forKey: .list)
            let first = try list.nestedContainer(keyedBy: CodingKeys.self)
            var inner = try list.nestedUnkeyedContainer()
            x = try first.decode(Int.self, forKey: .inner)
            guard try inner.decode(Int.self) == x, inner.isAtEnd, list.isAtEnd,
                try container.decodeNil(forKey: .inner)
            else { throw CancellationError() }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            var list = container.nestedUnkeyedContainer(forKey: .list)
            var first = list.nestedContainer(keyedBy: CodingKeys.self)
            var inner = list.nestedUnkeyedContainer()
            try inner.encode(x)
            try first.encode(x, forKey: .inner)
            try container.encodeNil(forKey: .inner)
        }
    }

    @Test func `nested containers may be filled in any order`() throws {
        try expect(
            Nested(),
            is: .dictionary([
                "list": .array([.dictionary(["inner": .integer(1)]), .array([.integer(1)])])
            ]))
    }

    @Test func `types of Foundation come back as they were`() throws {
        func returns<Value: Codable & Equatable>(_ value: Value) throws {
            let stored = try #require(try TypedValue.encode(value))
            #expect(try TypedValue.decode(stored, as: Value.self) == value)
        }
        try returns(CGPoint(x: 1, y: 2.5))
        try returns(1..<5)
        try returns(Duration.seconds(1.5))
        try returns(Locale(identifier: "de_DE"))
        try returns(try #require(TimeZone(identifier: "Europe/Berlin")))
        try returns(Calendar(identifier: .gregorian))
        try returns(IndexSet([1, 2, 5]))
        try returns(DateInterval(start: Date(timeIntervalSince1970: 0), duration: 1.5))
        try returns(DateComponents(year: 2020, month: 2))
        try returns(Measurement(value: 1, unit: UnitLength.meters))
        try returns([["a": [1, 2]], [:]])
    }

    // MARK: - Nil

    @Test func `nil alone has no form, which removes the key`() throws {
        #expect(try TypedValue.encode(Int?.none) == nil)
        #expect(try TypedValue.encode(Int??.some(.none)) == nil)
        #expect(try TypedValue.encode(Game?.none) == nil)
    }

    @Test func `an optional is what is in it`() throws {
        try expect(Int?.some(5), is: .integer(5))
        try expect(String??.some("$null"), is: .string("$null"))
        try expect([Int]?.some([]), is: .array([]))
        try expect(Colour??.some(.red), is: .string("red"))
    }

    private struct Explicit: Codable, Equatable {
        var a: Int?
        var b: Int??

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(a, forKey: .a)
            try container.encode(b, forKey: .b)
        }
        private enum CodingKeys: CodingKey { case a, b }

        init(a: Int?) { self.a = a }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            a = try container.decode(Int?.self, forKey: .a)
            b = try container.decode(Int??.self, forKey: .b)
        }
    }

    @Test func `a type that writes its nil is as one that leaves it out`() throws {
        try expect(Explicit(a: nil), is: .dictionary([:]))
        try expect(Explicit(a: 1), is: .dictionary(["a": .integer(1)]))
    }

    private func refuses(
        _ value: some Encodable, _ sentence: String, _ location: SourceLocation = #_sourceLocation
    ) {
        let error = #expect(throws: UnsupportedValue.self, sourceLocation: location) {
            try TypedValue.encode(value)
        }
        #expect(error?.description == sentence, sourceLocation: location)
    }

    @Test func `nil among elements is refused, with its place`() {
        refuses([1, nil], "[1]: nil is not a property-list value")
        refuses(["a": [Int?.none]], ".a[0]: nil is not a property-list value")
        refuses([["a": Int?.none, "b": 2]], "[0].a: nil is not a property-list value")
        refuses(Set([Int?.none]), "[0]: nil is not a property-list value")
    }

    // MARK: - Refusals

    private struct Furious: Codable, CustomStringConvertible, Error {
        var description: String { "I will not" }
        init() {}
        init(from decoder: any Decoder) throws { throw Furious() }
        func encode(to encoder: any Encoder) throws { throw Furious() }
    }

    @Test func `what has no form is refused, and nothing traps`() throws {
        refuses(Int128(5), "a Int128 is not a property-list value")
        refuses(["a": [UInt128.max]], ".a[0]: a UInt128 is not a property-list value")
        refuses([Furious()], "I will not")
        #expect(throws: UnreadableValue.self) {
            try TypedValue.decode(.integer(5), as: Int128.self)
        }
        #expect(throws: UnreadableValue.self) {
            try TypedValue.decode(.string("x"), as: Furious.self)
        }
    }

    private indirect enum Chain: Codable {
        case end
        case link(Chain)

        func encode(to encoder: any Encoder) throws {
            var container = encoder.unkeyedContainer()
            if case .link(let next) = self { try container.encode(next) }
        }

        init(from decoder: any Decoder) throws {
            var container = try decoder.unkeyedContainer()
            self = container.isAtEnd ? .end : .link(try container.decode(Chain.self))
        }

        init(depth: Int) { self = (1..<depth).reduce(.end) { chain, _ in .link(chain) } }
    }

    @Test func `values nest to the limit, and no deeper`() throws {
        let deepest = Chain(depth: PropertyListValue.depthMax)
        let stored = try #require(try TypedValue.encode(deepest))
        #expect(throws: Never.self) { try TypedValue.decode(stored, as: Chain.self) }
        refuses(Chain(depth: PropertyListValue.depthMax + 1), UnsupportedValue.tooDeepText)
        refuses(Chain(depth: 20_000), UnsupportedValue.tooDeepText)
    }
}

extension UnsupportedValue {
    fileprivate static let tooDeepText =
        "a value nests at most 512 levels: 511 containers, and what is in them"
}
