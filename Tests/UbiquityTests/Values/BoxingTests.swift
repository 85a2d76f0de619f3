// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Ubiquity
import UbiquityCore

/// Tests conversions from Swift's and Foundation's types, and back.
struct BoxingTests {
    @Test func `numbers of Swift keep their type`() throws {
        #expect(try PropertyListValue(true) == .boolean(true))
        #expect(try PropertyListValue(1) == .integer(1))
        #expect(try PropertyListValue(1.0) == .real(1))
        #expect(try PropertyListValue(Int8.min) == .integer(-128))
        #expect(try PropertyListValue(UInt8.max) == .integer(255))
        #expect(try PropertyListValue(Int64.min) == .integer(.min))
        #expect(try PropertyListValue(UInt64.max) == .unsigned(.max))
        #expect(try PropertyListValue(UInt64(5)) == .integer(5))
        #expect(try PropertyListValue(Float(1.5)) == .real(1.5))
        #expect(try PropertyListValue(CGFloat(1.5)) == .real(1.5))
    }

    @Test func `numbers of Foundation keep their type`() throws {
        #expect(try PropertyListValue(NSNumber(value: true)) == .boolean(true))
        #expect(try PropertyListValue(NSNumber(value: false)) == .boolean(false))
        #expect(try PropertyListValue(NSNumber(value: 1)) == .integer(1))
        #expect(try PropertyListValue(NSNumber(value: Int8(1))) == .integer(1))
        #expect(try PropertyListValue(NSNumber(value: 1.0)) == .real(1))
        #expect(try PropertyListValue(NSNumber(value: Float(1))) == .real(1))
        #expect(try PropertyListValue(NSNumber(value: UInt64.max)) == .unsigned(.max))
        #expect(try PropertyListValue(NSNumber(value: UInt64(7))) == .integer(7))
        #expect(try PropertyListValue(NSNumber(value: Int64.min)) == .integer(.min))
        #expect(try PropertyListValue(NSDecimalNumber(string: "1.5")) == .real(1.5))
    }

    @Test func `a decimal number goes in as the nearest real, alone and nested`() throws {
        let price = try #require(Decimal(string: "19.99"))
        #expect(try PropertyListValue(price) == .real(19.99))
        #expect(try PropertyListValue(NSDecimalNumber(decimal: price)) == .real(19.99))
        #expect(try PropertyListValue([price]) == .array([.real(19.99)]))
        #expect(
            try PropertyListValue(["a": [price]] as [String: Any])
                == .dictionary(["a": .array([.real(19.99)])]))
        #expect(try PropertyListValue(Decimal.nan) == .real(.nan))
        // As an `NSNumber` of a real casts on Apple's systems.
        #expect(try PropertyListValue(price).boxed as? Decimal == nil)
        #expect(try PropertyListValue(price).asString.flatMap { Decimal(string: $0) } == price)
    }

    @Test func `what a hashable box holds goes in as itself`() throws {
        #expect(try PropertyListValue(AnyHashable(5)) == .integer(5))
        #expect(try PropertyListValue(AnyHashable(NSNumber(value: 5))) == .integer(5))
        #expect(try PropertyListValue(AnyHashable(true)) == .boolean(true))
        #expect(try PropertyListValue(AnyHashable("x")) == .string("x"))
        let info: [AnyHashable: AnyHashable] = ["a": 1, "b": [1.5]]
        #expect(
            try PropertyListValue(info)
                == .dictionary(["a": .integer(1), "b": .array([.real(1.5)])]))
        #expect(
            try PropertyListValue(["abc".dropFirst(): 1] as [Substring: Int])
                == .dictionary(["bc": .integer(1)]))
    }

    @Test func `text, dates and data go in as either`() throws {
        let date = Date(timeIntervalSinceReferenceDate: 0.1 + 0.2)
        #expect(try PropertyListValue("é") == .string("é"))
        #expect(try PropertyListValue("abc".dropFirst()) == .string("bc"))
        #expect(try PropertyListValue("é" as NSString) == .string("é"))
        #expect(try PropertyListValue(NSMutableString(string: "x")) == .string("x"))
        #expect(try PropertyListValue(date) == .date(0.1 + 0.2))
        #expect(try PropertyListValue(date as NSDate) == .date(0.1 + 0.2))
        #expect(try PropertyListValue(Data([0, 255])) == .data([0, 255]))
        #expect(try PropertyListValue(NSData(data: Data([0, 255]))) == .data([0, 255]))
        #expect(try PropertyListValue(Data([1, 2, 3])[1...]) == .data([2, 3]))
    }

    @Test func `every NaN becomes the store's NaN`() throws {
        let other = Double(nan: 5, signaling: false)
        #expect(try PropertyListValue(other) == .real(.nan))
        #expect(try PropertyListValue(NSNumber(value: -other)) == .real(.nan))
        #expect(try PropertyListValue(Date(timeIntervalSinceReferenceDate: other)) == .date(.nan))
    }

    @Test func `containers go in as either, mixed and nested`() throws {
        let expected = PropertyListValue.array([
            .dictionary(["a": .array([.boolean(true), .integer(1), .real(1)])]), .string("x"),
        ])
        let swift: [Any] = [["a": [true, 1, 1.0] as [Any]] as [String: Any], "x"]
        #expect(try PropertyListValue(swift) == expected)
        let list = NSArray(array: [
            NSNumber(value: true), NSNumber(value: 1), NSNumber(value: 1.0),
        ])
        let foundation = NSArray(array: [
            NSDictionary(object: list, forKey: "a" as NSString), "x" as NSString,
        ])
        #expect(try PropertyListValue(foundation) == expected)
        #expect(try PropertyListValue([["a": list], "x"] as [Any]) == expected)
        #expect(try PropertyListValue([1, 2]) == .array([.integer(1), .integer(2)]))
        #expect(try PropertyListValue(["a": "b"]) == .dictionary(["a": .string("b")]))
        #expect(
            try PropertyListValue(["a": 1] as [AnyHashable: Any]) == .dictionary(["a": .integer(1)])
        )
        #expect(try PropertyListValue([Any]()) == .array([]))
        #expect(try PropertyListValue([String: Any]()) == .dictionary([:]))
    }

    @Test func `an optional inside an Any counts as what is in it, and nil is refused`() throws {
        #expect(try PropertyListValue(Int?.some(5) as Any) == .integer(5))
        #expect(try PropertyListValue(Bool??.some(.some(true)) as Any) == .boolean(true))
        #expect(
            try PropertyListValue(NSNumber?.some(NSNumber(value: true)) as Any) == .boolean(true))
        #expect(
            try PropertyListValue(["a", "b"] as [String?]) == .array([.string("a"), .string("b")]))
        refuses(String?.none as Any, "nil is not a property-list value")
        refuses(Int??.some(.none) as Any, "nil is not a property-list value")
        refuses(["a", nil] as [String?], "[1]: nil is not a property-list value")
        refuses(["a": Int?.none as Any], ".a: nil is not a property-list value")
    }

    private func refuses(_ value: Any, _ sentence: String) {
        let error = #expect(throws: UnsupportedValue.self) { try PropertyListValue(value) }
        #expect(error?.description == sentence)
    }

    @Test func `a value that is not a property list is refused, with the path of the leaf`() throws
    {
        let url = try #require(URL(string: "http://x"))
        refuses(NSNull(), "a NSNull is not a property-list value")
        refuses([NSNull()], "[0]: a NSNull is not a property-list value")
        refuses(url, "a URL is not a property-list value")
        refuses(Set([1]), "a Set<Int> is not a property-list value")
        refuses([1: "a"], "the keys of a dictionary must be strings, not Int")
        refuses(
            ["a": [0, ["url": url] as [String: Any]] as [Any]],
            ".a[1].url: a URL is not a property-list value")
        refuses((1, 2), "a (Int, Int) is not a property-list value")
        let error = UnsupportedValue("a URL is not a property-list value", path: "[3].url")
        #expect(
            error.description(forKey: "bookmarks")
                == "bookmarks[3].url: a URL is not a property-list value")
    }

    @Test func `containers nest to the limit, and no deeper`() throws {
        func nested(_ depth: Int) -> Any {
            (1..<depth).reduce(1 as Any) { value, _ in [value] as [Any] }
        }
        #expect(throws: Never.self) { try PropertyListValue(nested(PropertyListValue.depthMax)) }
        #expect(throws: UnsupportedValue.self) {
            try PropertyListValue(nested(PropertyListValue.depthMax + 1))
        }
    }

    @Test(arguments: hardValues.keys.sorted())
    func `what comes out goes in again as the same value`(_ name: String) throws {
        let value = try #require(hardValues[name])
        #expect(try PropertyListValue(value.boxed) == value)
    }

    @Test func `what comes out casts to what code written for Apple's systems asks for`() throws {
        let five = PropertyListValue.integer(5).boxed
        #expect(five as? Int == 5)
        #expect(five as? Int64 == 5)
        #expect(five as? Double == 5)
        #expect(five as? NSNumber == 5)
        #expect(PropertyListValue.boolean(true).boxed as? Bool == true)
        #expect(PropertyListValue.boolean(true).boxed as? NSNumber == 1)
        #expect(PropertyListValue.string("x").boxed as? String == "x")
        #expect(PropertyListValue.string("x").boxed as? NSString == "x")
        #expect(PropertyListValue.data([1]).boxed as? Data == Data([1]))
        #expect(PropertyListValue.date(1).boxed as? Date == Date(timeIntervalSinceReferenceDate: 1))
        let list = PropertyListValue.array([.boolean(true), .integer(1)])
        #expect((list.boxed as? [Any])?.count == 2)
        #expect(list.boxed is NSArray)
        #expect(list.boxedArray?.first is NSNumber)
        let dictionary = PropertyListValue.dictionary(["a": .boolean(true)])
        #expect((dictionary.boxed as? [String: Any])?["a"] as? Bool == true)
        #expect(dictionary.boxed is NSDictionary)
        #expect(dictionary.boxedDictionary?["a"] is NSNumber)
        #expect(list.boxedDictionary == nil)
    }

    @Test func `keys that Swift calls equal come out as one, and nothing traps`() throws {
        let value = PropertyListValue.dictionary(["\u{E9}": .integer(1), "e\u{301}": .integer(2)])
        let boxed = try #require(value.boxedDictionary)
        #expect(boxed.count == 1)
        #expect(boxed["\u{E9}"] as? Int == 2)
    }

    @Test func `numbers read as text as Foundation writes them`() {
        #expect(PropertyListValue.integer(123).asString == "123")
        #expect(PropertyListValue.unsigned(.max).asString == "18446744073709551615")
        #expect(PropertyListValue.boolean(true).asString == "1")
        #expect(PropertyListValue.boolean(false).asString == "0")
        #expect(PropertyListValue.real(2.5).asString == NSNumber(value: 2.5).stringValue)
        #expect(PropertyListValue.string("x").asString == "x")
        #expect(PropertyListValue.data([]).asString == nil)
        #expect(PropertyListValue.date(0).asString == nil)
    }
}
