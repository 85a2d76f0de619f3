// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import DropInSupport
import Foundation
import Testing
import Ubiquity

/// Numbers cast as they do on Apple's systems.
struct BoxedValueTests {
    private let store: NSUbiquitousKeyValueStore

    init() {
        TestHome.use()
        store = .default
    }

    private func expectTrue(_ value: Any?, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(value as? Bool == true, sourceLocation: sourceLocation)
        #expect(value as? Int == 1, sourceLocation: sourceLocation)
        #expect(value as? Int64 == 1, sourceLocation: sourceLocation)
        #expect(value as? Double == 1, sourceLocation: sourceLocation)
        #expect(value as? NSNumber == 1, sourceLocation: sourceLocation)
        #expect((value as? NSNumber)?.boolValue == true, sourceLocation: sourceLocation)
    }

    @Test func `a number from the store casts to every number type`() {
        store.set(true, forKey: "cast.bool")
        store.set(1, forKey: "cast.integer")
        store.set(1.0, forKey: "cast.real")
        for key in ["cast.bool", "cast.integer", "cast.real"] {
            expectTrue(store.object(forKey: key))
            expectTrue(store.value(forKey: key))
            expectTrue(store.dictionaryRepresentation[key])
        }
    }

    @Test func `a number in an array or a dictionary casts to every number type`() {
        store.set([true, 1, 1.0], forKey: "cast.array")
        store.set(["bool": true, "integer": 1, "real": 1.0], forKey: "cast.dictionary")
        for value in store.array(forKey: "cast.array") ?? [] { expectTrue(value) }
        for value in (store.dictionary(forKey: "cast.dictionary") ?? [:]).values {
            expectTrue(value)
        }
        for value in store.object(forKey: "cast.array") as? [NSNumber] ?? [] { expectTrue(value) }
        #expect((store.object(forKey: "cast.array") as? NSArray)?.count == 3)
        #expect(
            (store.object(forKey: "cast.dictionary") as? NSDictionary)?["bool"] as? Bool == true)
    }

    @Test func `a half is not an integer, and an integer of 2 is not a Bool`() {
        store.set(0.5, forKey: "cast.half")
        store.set(2, forKey: "cast.two")
        #expect(store.object(forKey: "cast.half") as? Int == nil)
        #expect(store.object(forKey: "cast.half") as? Double == 0.5)
        #expect(store.object(forKey: "cast.two") as? Bool == nil)
        #expect(store.object(forKey: "cast.two") as? Int32 == 2)
        #expect(store.bool(forKey: "cast.two"))
    }

    @Test func `objects are strings, dates and data of Swift and of Foundation`() {
        store.set("text", forKey: "cast.string")
        store.set(Data([1]), forKey: "cast.data")
        store.set(Date(timeIntervalSinceReferenceDate: 1), forKey: "cast.date")
        #expect(store.object(forKey: "cast.string") as? String == "text")
        #expect(store.object(forKey: "cast.string") as? NSString == "text")
        #expect(store.object(forKey: "cast.data") as? Data == Data([1]))
        #expect((store.object(forKey: "cast.data") as? NSData)?.length == 1)
        #expect((store.object(forKey: "cast.date") as? Date)?.timeIntervalSinceReferenceDate == 1)
        #expect((store.object(forKey: "cast.date") as? NSDate)?.timeIntervalSinceReferenceDate == 1)
        #expect(store.object(forKey: "cast.string") as? Int == nil)
    }

    @Test func `a type is not lost when a value is read and written again`() throws {
        store.set([true, 1, 1.0], forKey: "again.a")
        store.set(store.array(forKey: "again.a"), forKey: "again.b")
        store.set(store.object(forKey: "again.b"), forKey: "again.c")
        let numbers = try #require(store.array(forKey: "again.c") as? [NSNumber])
        #expect(type(of: numbers[0]) == type(of: NSNumber(value: true)))
        #expect(type(of: numbers[1]) != type(of: NSNumber(value: true)))
        #expect(String(cString: numbers[1].objCType) != "d")
        #expect(String(cString: numbers[2].objCType) == "d")
    }

    @Test func `decimal numbers are stored as numbers`() throws {
        let price = try #require(Decimal(string: "19.99"))
        store.set(price, forKey: "cast.decimal")
        store.set(["price": price, "list": [price]] as [String: Any], forKey: "cast.decimals")
        #expect(store.double(forKey: "cast.decimal") == 19.99)
        #expect(store.string(forKey: "cast.decimal").flatMap { Decimal(string: $0) } == price)
        #expect(store.dictionary(forKey: "cast.decimals")?["price"] as? Double == 19.99)
    }

    @Test func `mutable objects of Foundation are stored as what they hold`() {
        let list = NSMutableArray(array: [NSMutableString(string: "a"), NSNumber(value: 1)])
        let entries = NSMutableDictionary()
        entries["list"] = list
        entries["data"] = NSMutableData(data: Data([1]))
        store.set(entries, forKey: "cast.mutable")
        list.removeAllObjects()
        let read = store.dictionary(forKey: "cast.mutable")
        #expect((read?["list"] as? [Any])?.count == 2)
        #expect(read?["data"] as? Data == Data([1]))
        store.set(NSNull(), forKey: "cast.null")
        #expect(store.object(forKey: "cast.null") == nil)
    }

    @Test func `without an identifier the values are there and synchronize says no`() {
        store.set("here", forKey: "local")
        #expect(!store.synchronize())
        #expect(NSUbiquitousKeyValueStore().string(forKey: "local") == "here")
    }

    @Test func `what is missing is false, zero or nil`() {
        #expect(!store.bool(forKey: "missing"))
        #expect(store.longLong(forKey: "missing") == 0 && store.double(forKey: "missing") == 0)
        #expect(store.string(forKey: "missing") == nil && store.object(forKey: "missing") == nil)
        #expect(store.array(forKey: "missing") == nil && store.data(forKey: "missing") == nil)
        #expect(store.dictionary(forKey: "missing") == nil)
    }
}

#endif
