// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import DropInSupport
import Foundation
import Testing
import Ubiquity

/// Tests what every call stores, in the store itself and in a double of three methods.
struct EveryCallTests {
    enum Kind: CaseIterable { case itself, double }

    init() { TestHome.use() }

    /// Gives a store, the calls on it, and the way to what they stored.
    private func calls(_ kind: Kind) -> (
        store: NSUbiquitousKeyValueStore, calls: EveryCall, object: (String) -> Any?
    ) {
        let store = kind == .itself ? NSUbiquitousKeyValueStore.default : DictionaryStore()
        let prefix = UUID().uuidString.prefix(8) + "."
        let calls = EveryCall(store: store, prefix: String(prefix))
        return (store, calls, { store.object(forKey: prefix + $0) })
    }

    @Test(arguments: Kind.allCases)
    func `numbers of every type are stored as what they are`(_ kind: Kind) {
        let (store, calls, object) = calls(kind)
        calls.numbers()
        calls.numbers()
        let longLong = { store.longLong(forKey: calls.prefix + $0) }
        #expect(object("literal") as? Int == 5)
        #expect(store.object(forKey: "literal key") as? Int == 6)
        #expect(object("") as? Int == 9 && object("sum") as? Int == 8)
        #expect(longLong("negative") == -7)
        #expect(object("real literal") as? Double == 1.5)
        #expect(object("true") as? Bool == true)
        #expect(object("Int") as? Int == 42)
        #expect(longLong("Int64") == 42)
        #expect(longLong("Int64.max") == .max)
        #expect(longLong("Int32") == -32)
        #expect(longLong("UInt") == 7)
        #expect((object("UInt64.max") as? NSNumber)?.uint64Value == .max)
        #expect(longLong("UInt64.max") == .max)
        #expect(longLong("UInt8") == 255)
        #expect(store.double(forKey: calls.prefix + "Float") == 0.25)
        #expect(store.double(forKey: calls.prefix + "CGFloat") == 0.75)
        #expect(object("Double") as? Double == .pi)
        #expect(object("NSNumber") as? Int == 3)
        #expect(store.bool(forKey: calls.prefix + "NSNumber of true"))
        #expect(!store.bool(forKey: calls.prefix + "toggled"))
        #expect(longLong("counted") == 2)
        #expect(Int(longLong("chosen")) == 1 && longLong("multiplied") == 6)
    }

    @Test(arguments: Kind.allCases)
    func `texts, data and dates are stored as what they are`(_ kind: Kind) {
        let (store, calls, object) = calls(kind)
        calls.textsAndData("any")
        let string = { store.string(forKey: calls.prefix + $0) }
        let data = { store.data(forKey: calls.prefix + $0) }
        #expect(string("literal") == "text")
        #expect(string("interpolated") == "a1b")
        #expect(string("Substring") == "pre")
        #expect(string("NSString") == "object")
        #expect(string("cast") == "any" && string("forced cast") == "any")
        #expect(string("optional") == "optional" && string("unwrapped") == "optional")
        #expect(data("Data") == Data([1, 2, 3]))
        #expect(data("Data?") == Data("data".utf8))
        #expect(data("NSData") == Data([4]))
        #expect(object("Date") as? Date == Date(timeIntervalSinceReferenceDate: 0.125))
        #expect(object("NSDate") as? Date == Date(timeIntervalSinceReferenceDate: 0.5))
        #expect(string("Data") == nil && data("literal") == nil)
    }

    @Test(arguments: Kind.allCases)
    func `containers are stored with all that is in them`(_ kind: Kind) throws {
        let (store, calls, object) = calls(kind)
        calls.containers()
        let array = { store.array(forKey: calls.prefix + $0) }
        let dictionary = { store.dictionary(forKey: calls.prefix + $0) }
        #expect(array("array of Int") as? [Int] == [1, 2])
        #expect(array("array of String") as? [String] == ["a", "b"])
        #expect(array("array of arrays") as? [[Int]] == [[1], [2, 3]])
        #expect(array("empty array")?.isEmpty == true)
        #expect(array("NSArray") as? [Int] == [1, 2])
        #expect(
            array("array of dictionaries") as? [[String: String]]
                == [["title": "one"], ["title": "two"]])
        #expect(array("mapped") as? [Int] == [1, 4, 9])
        #expect(object("raw values") as? [String] == ["friday", "saturday"])
        let mixed = try #require(array("mixed array"))
        #expect(mixed[0] as? Int == 1 && mixed[1] as? String == "two")
        #expect(mixed[2] as? Double == 3.5 && mixed[3] as? Bool == false)
        #expect(dictionary("dictionary of Int") as? [String: Int] == ["a": 1])
        #expect(dictionary("empty dictionary")?.isEmpty == true)
        #expect(dictionary("mixed dictionary")?["c"] as? Bool == true)
        let nested = dictionary("nested dictionary") as? [String: [String: [String: Int]]]
        #expect(nested == ["a": ["b": ["c": 1]]])
        #expect(dictionary("NSDictionary")?["x"] as? Int == 1)
        #expect(array("NSDictionary") == nil && dictionary("NSArray") == nil)
    }

    @Test(arguments: Kind.allCases)
    func `nil of every type removes the key`(_ kind: Kind) {
        let (store, calls, object) = calls(kind)
        store.set(1, forKey: calls.prefix + "gone")
        calls.nils("gone")
        calls.nils("never there")
        #expect(object("gone") == nil && object("never there") == nil)
    }

    @Test(arguments: Kind.allCases)
    func `the two methods of key-value coding are the setter and the getter`(_ kind: Kind) {
        let (store, calls, object) = calls(kind)
        store.set(1, forKey: calls.prefix + "gone")
        calls.throughKeyValueCoding()
        #expect(object("text") as? String == "text")
        #expect(store.value(forKey: calls.prefix + "number") as? Int == 12)
        #expect(store.value(forKey: calls.prefix + "array") as? [Int] == [1, 2])
        #expect(store.value(forKey: calls.prefix + "gone") == nil)
    }

    @Test
    func `a value that is not a property list compiles, is refused, and leaves the old value`() {
        let (store, calls, object) = calls(.itself)
        store.set("old", forKey: calls.prefix + "kept")
        calls.refused("kept")
        calls.refused("never there")
        #expect(object("kept") as? String == "old")
        #expect(object("never there") == nil)
    }

    @Test func `a key that is too long or empty is refused`() {
        let store = NSUbiquitousKeyValueStore.default
        let long = String(repeating: "k", count: 65)
        store.set(1, forKey: long)
        store.set(1, forKey: "")
        store.removeObject(forKey: "")
        #expect(store.object(forKey: long) == nil && store.object(forKey: "") == nil)
    }
}

#endif
