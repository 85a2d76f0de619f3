// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import UbiquityCore

struct PropertyListFormTests {
    @Test(arguments: ListSamples.values.keys.sorted())
    func `the binary form gives every value back`(_ name: String) throws {
        let value = try #require(ListSamples.values[name])
        let root = PropertyListValue.dictionary(["k": value])
        #expect(try BinaryPropertyList.decode(BinaryPropertyList.encode(root)) == root)
    }

    /// The two that Foundation cannot hold, or has no depth for, are why the form is our own.
    @Test(
        arguments: ListSamples.values.keys.filter { !["folded", "deepest"].contains($0) }.sorted())
    func `Foundation reads the binary form`(_ name: String) throws {
        let root = PropertyListValue.dictionary(["k": try #require(ListSamples.values[name])])
        #expect(try FoundationReader.read(BinaryPropertyList.encode(root)) == root)
    }

    @Test(arguments: ListSamples.values.keys.sorted())
    func `the binary form is read as Foundation writes it`(_ name: String) throws {
        let value = try #require(ListSamples.values[name])
        guard let foundation = Self.foundation(value) else { return }
        let bytes = try PropertyListSerialization.data(
            fromPropertyList: ["k": foundation], format: .binary, options: 0)
        #expect(
            try BinaryPropertyList.decode([UInt8](bytes)) == .dictionary(["k": value]))
    }

    @Test(arguments: ListSamples.values.keys.sorted())
    func `Foundation reads from the XML form what that can carry`(_ name: String) throws {
        let root = PropertyListValue.dictionary(["k": try #require(ListSamples.values[name])])
        let isExact = !["controls", "minus", "fraction", "never", "folded"].contains(name)
        let compatibility = XMLCompatibility([try Key("k"): root])
        #expect((compatibility.impossible + compatibility.lossy).isEmpty == isExact)
        // Foundation reads no values that nest so deeply.
        if isExact, name != "deepest" { #expect(try xml(root) == root) }
    }

    @Test(arguments: ListSamples.values.keys.sorted())
    func `our reader gives back what the XML form holds, its own and Foundation's`(
        _ name: String
    ) throws {
        let value = try #require(ListSamples.values[name])
        let root = PropertyListValue.dictionary(["k": value])
        guard let bytes = PropertyListXML.encode(root) else { return }
        if name != "fraction" {
            #expect(try PropertyList.decode(bytes, depthMax: 513) == root)
        }
        guard !["fraction", "minus"].contains(name),
            let foundation = Self.foundation(value)
        else { return }
        let xml = try PropertyListSerialization.data(
            fromPropertyList: ["k": foundation], format: .xml, options: 0)
        #expect(try PropertyList.decode([UInt8](xml)) == root || name == "returns")
    }

    @Test func `the XML form has the calendar's days`() throws {
        var second = XMLCompatibility.firstSecond
        while second <= XMLCompatibility.lastSecond {
            let root = PropertyListValue.dictionary(["k": .date(second)])
            try #require(try xml(root) == root, "\(second)")
            // A bit more than a year, at another time of the day each.
            second += 31_626_061 * 13
        }
    }

    @Test(arguments: [
        -63_114_076_800.0, XMLCompatibility.firstSecond - 1, XMLCompatibility.lastSecond + 1, 1e13,
    ])
    func `a date of any year is in the XML form as our reader takes it`(_ second: Double) throws {
        let root = PropertyListValue.dictionary(["k": .date(second)])
        let bytes = try #require(PropertyListXML.encode(root))
        #expect(try PropertyList.decode(bytes) == root)
        // `Date.distantPast` is in the year 0, which all programs read.
        let isLossy = !XMLCompatibility([try Key("k"): .date(second)]).lossy.isEmpty
        #expect(isLossy == !XMLCompatibility.hasCalendar(second))
        #expect(XMLCompatibility.hasCalendar(-63_114_076_800))
    }

    /// The references would be kept at every depth: 174,000 numbers, 513 times.
    @Test func `an array of itself is refused before it takes much memory`() {
        let references = 174_000
        var array: [UInt8] = [0xAF, 0x12] + bigEndian(references, bytes: 4)
        array += Array(repeating: 0, count: references)
        let bytes = list([array])
        let error = #expect(throws: PropertyListError.self) {
            try BinaryPropertyList.decode(bytes)
        }
        #expect(error?.description.contains("too large") == true)
    }

    @Test func `a negative number beyond 64 bits is not taken for another`() throws {
        let bytes = list([[0x14] + Array(repeating: 0xFF, count: 8) + bigEndian(5, bytes: 8)])
        #expect(throws: PropertyListError.self) { try BinaryPropertyList.decode(bytes) }
    }

    @Test func `a list in which much refers to the same is refused before it fills the memory`() {
        // Forty arrays, each with the next one twice.
        let bytes = list((1..<40).map { [0xA2, $0, $0] } + [[0x08]])
        #expect(throws: PropertyListError.self) { try BinaryPropertyList.decode(bytes) }
    }

    @Test func `an array that contains itself is refused`() {
        let bytes = list([[0xA1, 0]])
        #expect(throws: PropertyListError.self) { try BinaryPropertyList.decode(bytes) }
    }

    @Test func `no part of a list that is cut or spoilt ends the program`() {
        let whole = BinaryPropertyList.encode(
            .dictionary(["a": .array([.integer(300), .data([1])])]))
        for count in whole.indices {
            _ = try? BinaryPropertyList.decode(Array(whole.prefix(count)))
        }
        var accepted = 0
        for index in whole.indices {
            for byte: UInt8 in [0, 0x0F, 0x7F, 0xFF] {
                var bytes = whole
                bytes[index] = byte
                if (try? BinaryPropertyList.decode(bytes)) != nil { accepted += 1 }
            }
        }
        #expect(accepted < whole.count * 4)
    }

    @Test func `an entry that no store can hold is left out, and said with its place`() throws {
        let bytes = list([
            [0xD2, 1, 2, 3, 5], [0x51, 0x61], [0x51, 0x62], [0xA1, 4], [0x80, 1], [0x09],
        ])
        var left: [ExactString: UnsupportedValue] = [:]
        let root = try BinaryPropertyList.decode(bytes) { left[$0] = $1 }
        #expect(root == .dictionary(["b": .boolean(true)]))
        #expect(left.mapValues(\.path) == ["a": "[0]"])
        let error = #expect(throws: PropertyListError.self) {
            try BinaryPropertyList.decode(bytes)
        }
        #expect(
            error?.description == ".a[0]: a reference of a keyed archive is not a property-list "
                + "value (byte 19)")
    }

    /// A list of these objects, the first being the root, with references of a byte.
    private func list(_ objects: [[UInt8]]) -> [UInt8] {
        var bytes = Array("bplist00".utf8)
        var offsets: [UInt8] = []
        for object in objects {
            offsets.append(UInt8(bytes.count))
            bytes += object
        }
        let table = bytes.count
        bytes += offsets + [0, 0, 0, 0, 0, 0, 1, 1]
        return [objects.count, 0, table].reduce(bytes) { $0 + bigEndian($1, bytes: 8) }
    }

    private func bigEndian(_ number: Int, bytes count: Int) -> [UInt8] {
        (1...count).map { UInt8(truncatingIfNeeded: number >> (8 * (count - $0))) }
    }

    private func xml(_ root: PropertyListValue) throws -> PropertyListValue {
        try FoundationReader.read(try #require(PropertyListXML.encode(root)))
    }

    /// Nil for what only a store can hold, or Foundation's writer spoils.
    private static func foundation(_ value: PropertyListValue) -> Any? {
        switch value {
        case .string(let string): string.string
        case .boolean(let boolean): boolean
        case .integer(let integer): NSNumber(value: integer)
        case .unsigned(let unsigned): NSNumber(value: unsigned)
        case .real(let real): real.isNaN ? nil : NSNumber(value: real)
        case .date(let seconds): Date(timeIntervalSinceReferenceDate: seconds)
        case .data(let bytes): Data(bytes)
        case .array, .dictionary, .sealed: nil
        }
    }
}

/// Values that a form is most likely to spoil, by a name.
private enum ListSamples {
    static let values: [String: PropertyListValue] = [
        "string": .string("é👩🏽‍🚀<&>\"'"), "empty": .string(""), "blanks": .string("  a\n\tb  "),
        "controls": .string("\u{0}\u{1}\r\n"), "returns": .string("a\r\n\rb"),
        "true": .boolean(true), "false": .boolean(false),
        "zero": .integer(0), "byte": .integer(255), "short": .integer(256),
        "word": .integer(65_536), "long": .integer(4_294_967_296), "negative": .integer(-1),
        "least": .integer(.min), "greatest": .integer(.max), "unsigned": .unsigned(.max),
        "above": .unsigned(UInt64(Int64.max) + 1), "real": .real(0.1), "minus": .real(-0.0),
        "nan": .real(.nan), "infinity": .real(.infinity), "below": .real(-.infinity),
        "tiny": .real(.leastNonzeroMagnitude), "huge": .real(.greatestFiniteMagnitude),
        "whole": .real(1), "date": .date(800_000_000), "fraction": .date(800_000_000.123456),
        "old": .date(-63_113_904_000), "never": .date(.infinity), "data": .data([0, 255, 10]),
        "nothing": .data([]), "large": .data(Array(repeating: 7, count: 70_000)),
        "array": .array([.boolean(false), .integer(0), .real(0), .array([])]),
        "dictionary": .dictionary(["": .data([]), "inner": .dictionary(["k": .string("v")])]),
        "folded": .dictionary(["\u{E9}": .integer(1), "e\u{301}": .integer(2)]),
        "deepest": deepest, "many": .array((0..<300).map { .integer($0) }),
    ]

    static let deepest = (1..<PropertyListValue.depthMax).reduce(PropertyListValue.array([])) {
        value, level in level.isMultiple(of: 2) ? .array([value]) : .dictionary(["k": value])
    }
}

/// Foundation's reader of property lists, as far as these tests need it.
private enum FoundationReader {
    struct NotReadable: Error {}

    static func read(_ bytes: [UInt8]) throws -> PropertyListValue {
        try value(
            PropertyListSerialization.propertyList(from: Data(bytes), options: [], format: nil))
    }

    private static func value(_ any: Any) throws -> PropertyListValue {
        switch any {
        case let boolean as Bool where type(of: any) == Bool.self: .boolean(boolean)
        case let date as Date: .date(date.timeIntervalSinceReferenceDate)
        case let data as Data: .data([UInt8](data))
        case let string as String: .string(string)
        case let number as NSNumber: value(number)
        case let array as [Any]: .array(try array.map(value))
        case let dictionary as [String: Any]:
            .dictionary(
                Dictionary(
                    uniqueKeysWithValues: try dictionary.map {
                        (ExactString($0.key), try value($0.value))
                    }))
        default: throw NotReadable()
        }
    }

    private static func value(_ number: NSNumber) -> PropertyListValue {
        if type(of: number) == type(of: NSNumber(value: true)) { return .boolean(number.boolValue) }
        switch UInt8(bitPattern: number.objCType.pointee) {
        case UInt8(ascii: "d"), UInt8(ascii: "f"):
            return .real(PropertyListValue.canonical(number.doubleValue))
        case UInt8(ascii: "Q"): return PropertyListValue(unsigned: number.uint64Value)
        default: return .integer(number.int64Value)
        }
    }
}
