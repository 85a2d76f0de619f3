// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Ubiquity
import UbiquityCore

/// Tests reading values that another app, or another language, wrote as another type.
struct TypedReadingTests {
    private func reads<Value: Decodable & Equatable>(
        _ stored: PropertyListValue, as value: Value, _ location: SourceLocation = #_sourceLocation
    ) {
        #expect(
            (try? TypedValue.decode(stored, as: Value.self)) == value, sourceLocation: location)
        #expect(
            (try? TypedValue.decode(stored, as: Value?.self)) == value, sourceLocation: location)
    }

    private func isUnreadable<Value: Decodable>(
        _ stored: PropertyListValue, as type: Value.Type,
        _ location: SourceLocation = #_sourceLocation
    ) {
        #expect(throws: UnreadableValue.self, sourceLocation: location) {
            try TypedValue.decode(stored, as: type)
        }
        #expect(throws: UnreadableValue.self, sourceLocation: location) {
            try TypedValue.decode(stored, as: Optional<Value>.self)
        }
    }

    private static let noScalars: [PropertyListValue] = [
        .date(0), .data([1]), .array([.integer(1)]), .dictionary(["a": .integer(1)]),
    ]

    @Test func `an integer reads from any number, text and Bool that fits`() {
        reads(.real(2), as: 2)
        reads(.real(-2.67), as: -2)
        reads(.boolean(true), as: 1)
        reads(.string("123"), as: 123)
        reads(.string(" 12 "), as: Int8(12))
        reads(.string("2.67"), as: 2)
        reads(.string("9223372036854775807"), as: Int64.max)
        reads(.string("18446744073709551615"), as: UInt64.max)
        reads(.real(9_223_372_036_854_775_808), as: UInt64(1) << 63)
        for value in Self.noScalars { isUnreadable(value, as: Int.self) }
    }

    @Test func `an integer that does not fit is not cut`() {
        isUnreadable(.integer(300), as: Int8.self)
        isUnreadable(.integer(-1), as: UInt.self)
        isUnreadable(.unsigned(.max), as: Int64.self)
        isUnreadable(.real(1e300), as: Int.self)
        isUnreadable(.real(.nan), as: Int.self)
        isUnreadable(.real(-.infinity), as: Int.self)
        isUnreadable(.string("300"), as: UInt8.self)
        isUnreadable(.string("99999999999999999999"), as: Int.self)
        isUnreadable(.string("-99999999999999999999"), as: Int.self)
        isUnreadable(.string("9223372036854775808"), as: Int64.self)
    }

    @Test func `a text that is no number or Bool is none`() {
        for text in [
            "loud", "", " ", "12 apples", "nan", "infinity", "0x10", "1,5", "--1", "e", "1e",
        ] {
            isUnreadable(.string(ExactString(text)), as: Int.self)
            isUnreadable(.string(ExactString(text)), as: UInt8.self)
            isUnreadable(.string(ExactString(text)), as: Double.self)
            isUnreadable(.string(ExactString(text)), as: Float.self)
            isUnreadable(.string(ExactString(text)), as: Bool.self)
        }
    }

    @Test func `a strict read takes the type alone, and numbers that are exact`() throws {
        func strictly<Value: Decodable>(_ stored: PropertyListValue, _ type: Value.Type) -> Value? {
            try? TypedValue.decode(stored, as: type, exactly: true)
        }
        #expect(strictly(.integer(5), Int.self) == 5 && strictly(.real(5), Int?.self) == 5)
        #expect(strictly(.integer(5), Double.self) == 5)
        #expect(strictly(.string("5"), String.self) == "5")
        for stored: PropertyListValue in [.string("5"), .boolean(true), .real(2.5), .date(0)] {
            #expect(strictly(stored, Int.self) == nil && strictly(stored, Int?.self) == nil)
        }
        #expect(strictly(.string("5"), Double.self) == nil)
        #expect(
            strictly(.integer(1), Bool.self) == nil && strictly(.string("yes"), Bool.self) == nil)
        #expect(strictly(.integer(1), String.self) == nil)
    }

    @Test func `a real reads from any number, text and Bool`() {
        reads(.integer(3), as: 3.0)
        reads(.unsigned(.max), as: 18_446_744_073_709_551_615.0)
        reads(.string("123.4"), as: 123.4)
        reads(.string(" -1e3 "), as: Float(-1_000))
        reads(.boolean(true), as: 1.0)
        reads(.real(0.1), as: Float(0.1))
        reads(.integer(3), as: Float(3))
        reads(.real(.infinity), as: Float.infinity)
        isUnreadable(.real(1e300), as: Float.self)
        for value in Self.noScalars { isUnreadable(value, as: Double.self) }
    }

    @Test func `a Bool reads from any number and text`() {
        reads(.string("YES"), as: true)
        reads(.string("no"), as: false)
        reads(.string(" True"), as: true)
        reads(.string("2"), as: true)
        reads(.string("0"), as: false)
        reads(.integer(2), as: true)
        reads(.real(0), as: false)
        for value in Self.noScalars { isUnreadable(value, as: Bool.self) }
    }

    @Test func `text reads from numbers and Bools`() {
        reads(.integer(123), as: "123")
        reads(.boolean(true), as: "1")
        reads(.real(2.5), as: "2.5")
        for value in Self.noScalars { isUnreadable(value, as: String.self) }
    }

    @Test func `a decimal reads from numbers by their digits`() throws {
        reads(.integer(5), as: Decimal(5))
        reads(.unsigned(.max), as: Decimal(UInt64.max))
        reads(.real(0.1), as: try #require(Decimal(string: "0.1")))
        reads(.real(1e100), as: try #require(Decimal(string: "1e100")))
        reads(.real(.nan), as: Decimal.nan)
        isUnreadable(.real(.infinity), as: Decimal.self)
        isUnreadable(.string("1.5 kg"), as: Decimal.self)
        isUnreadable(.string(""), as: Decimal.self)
    }

    @Test func `dates, data and addresses read from their own type alone`() {
        for value in [PropertyListValue.integer(1), .real(1), .boolean(true), .array([])] {
            isUnreadable(value, as: Date.self)
            isUnreadable(value, as: Data.self)
            isUnreadable(value, as: URL.self)
            isUnreadable(value, as: UUID.self)
        }
        isUnreadable(.string("x"), as: UUID.self)
        isUnreadable(.string(""), as: URL.self)
    }

    private struct Settings: Codable, Equatable {
        var size: Int
        var ratio: Double
        var gain: Float
    }

    @Test func `inside a container any exact number counts`() {
        reads(
            .dictionary([
                "size": .real(2), "ratio": .integer(3), "gain": .real(0.1), "more": .string("x"),
            ]), as: Settings(size: 2, ratio: 3, gain: 0.1))
        reads(.array([.real(2)]), as: [2])
        reads(.dictionary(["a": .integer(2)]), as: ["a": 2.0])
    }

    /// Tries one form after the other, as types do that have any of several.
    private enum Anything: Codable, Equatable {
        case truth(Bool)
        case number(Int)
        case text(String)

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let truth = try? container.decode(Bool.self) {
                self = .truth(truth)
            } else if let number = try? container.decode(Int.self) {
                self = .number(number)
            } else {
                self = .text(try container.decode(String.self))
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch self {
            case .truth(let truth): try container.encode(truth)
            case .number(let number): try container.encode(number)
            case .text(let text): try container.encode(text)
            }
        }
    }

    @Test func `inside a container text and Bools are not numbers, so that types can try in turn`()
    {
        let all: [PropertyListValue] = [.string("1"), .integer(1), .boolean(true)]
        reads(.array(all), as: [Anything.text("1"), .number(1), .truth(true)])
        isUnreadable(.array([.string("1")]), as: [Int].self)
        isUnreadable(.array([.integer(1)]), as: [Bool].self)
        isUnreadable(.array([.integer(1)]), as: [String].self)
        isUnreadable(.array([.boolean(true)]), as: [Double].self)
        isUnreadable(.array([.real(2.5)]), as: [Int].self)
        isUnreadable(.array([.integer(300)]), as: [Int8].self)
    }

    @Test func `what cannot be read is reported, with its place`() {
        func says<Value: Decodable>(
            _ sentence: String, _ stored: PropertyListValue, as type: Value.Type
        ) {
            let error = #expect(throws: UnreadableValue.self) {
                try TypedValue.decode(stored, as: type)
            }
            #expect(error?.description == sentence)
        }
        says("expected Int, found a date", .date(0), as: Int?.self)
        says("expected array, found a string", .string("x"), as: [Int].self)
        says("expected dictionary, found an array", .array([]), as: Settings.self)
        says("\"size\" is missing", .dictionary([:]), as: Settings.self)
        says(
            ".a[1].ratio: expected Double, found a string",
            .dictionary([
                "a": .array([
                    .dictionary(["size": .integer(1), "ratio": .real(1), "gain": .real(1)]),
                    .dictionary(["size": .integer(1), "ratio": .string("x")]),
                ])
            ]), as: [String: [Settings]].self)
        says("[1]: expected Int, found nothing", .array([.integer(1)]), as: Pair.self)
    }

    private struct Pair: Decodable {
        init(from decoder: any Decoder) throws {
            var container = try decoder.unkeyedContainer()
            _ = (try container.decode(Int.self), try container.decode(Int.self))
        }
    }
}
