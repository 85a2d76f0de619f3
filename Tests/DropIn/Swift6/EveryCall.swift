// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// Every kind of argument that apps pass to the setters; each must compile and mean what it says.
struct EveryCall {
    let store: NSUbiquitousKeyValueStore
    let prefix: String

    private func key(_ name: String) -> String { prefix + name }

    func numbers() {
        store.set(5, forKey: key("literal"))
        store.set(-7, forKey: key("negative"))
        store.set(1.5, forKey: key("real literal"))
        store.set(true, forKey: key("true"))
        let integer = 42
        store.set(integer, forKey: key("Int"))
        store.set(Int64(integer), forKey: key("Int64"))
        store.set(Int64.max, forKey: key("Int64.max"))
        store.set(Int32(-32), forKey: key("Int32"))
        store.set(UInt(7), forKey: key("UInt"))
        store.set(UInt64.max, forKey: key("UInt64.max"))
        store.set(UInt8(255), forKey: key("UInt8"))
        store.set(Float(0.25), forKey: key("Float"))
        store.set(CGFloat(0.75), forKey: key("CGFloat"))
        store.set(Double.pi, forKey: key("Double"))
        store.set(NSNumber(value: 3), forKey: key("NSNumber"))
        store.set(NSNumber(value: true), forKey: key("NSNumber of true"))
        store.set(!store.bool(forKey: key("toggled")), forKey: key("toggled"))
        store.set(store.longLong(forKey: key("counted")) + 1, forKey: key("counted"))
        store.set(Date().timeIntervalSince1970, forKey: key("TimeInterval"))
        store.set(integer > 1 ? 1 : 0, forKey: key("chosen"))
        store.set(2 * 3, forKey: key("multiplied"))
        store.set(6, forKey: "literal key")
        store.set(7, forKey: prefix)
        store.set(8, forKey: prefix + "sum")
        store.set(9, forKey: [prefix][0])
    }

    func textsAndData(_ any: Any) {
        store.set("text", forKey: key("literal"))
        store.set("a\(1)b", forKey: key("interpolated"))
        store.set("prefix".prefix(3), forKey: key("Substring"))
        store.set("object" as NSString, forKey: key("NSString"))
        store.set(any as? String, forKey: key("cast"))
        store.set((any as! String), forKey: key("forced cast"))
        let optional: String? = "optional"
        store.set(optional, forKey: key("optional"))
        store.set(optional!, forKey: key("unwrapped"))
        store.set(Data([1, 2, 3]), forKey: key("Data"))
        store.set("data".data(using: .utf8), forKey: key("Data?"))
        store.set(Data([4]) as NSData, forKey: key("NSData"))
        store.set(Date(timeIntervalSinceReferenceDate: 0.125), forKey: key("Date"))
        store.set(NSDate(timeIntervalSinceReferenceDate: 0.5), forKey: key("NSDate"))
    }

    func containers() {
        store.set([1, 2], forKey: key("array of Int"))
        store.set(["a", "b"], forKey: key("array of String"))
        store.set([1, "two", 3.5, false], forKey: key("mixed array"))
        store.set([1, "two"] as [Any], forKey: key("array of Any"))
        store.set([[1], [2, 3]], forKey: key("array of arrays"))
        store.set([] as [String], forKey: key("empty array"))
        store.set([Int](), forKey: key("empty array of Int"))
        store.set(NSArray(array: [1, 2]), forKey: key("NSArray"))
        store.set(["a": 1], forKey: key("dictionary of Int"))
        store.set(["a": 1, "b": "two", "c": true], forKey: key("mixed dictionary"))
        store.set(["a": ["b": ["c": 1]]], forKey: key("nested dictionary"))
        store.set([:] as [String: String], forKey: key("empty dictionary"))
        store.set(["x": 1] as NSDictionary, forKey: key("NSDictionary"))
        store.set([["title": "one"], ["title": "two"]], forKey: key("array of dictionaries"))
        store.set((1...3).map { $0 * $0 }, forKey: key("mapped"))
        store.set(["b", "a"].sorted(), forKey: key("sorted"))
        store.set(Array(Set(["one"])), forKey: key("set as array"))
        store.set(Dictionary(uniqueKeysWithValues: [("k", 1)]), forKey: key("made dictionary"))
        store.set(Weekday.allCases.map(\.rawValue), forKey: key("raw values"))
        store.set(Weekday.friday.rawValue, forKey: key("raw value"))
    }

    func nils(_ name: String) {
        store.set(nil as String?, forKey: key(name))
        store.set(nil as Any?, forKey: key(name))
        store.set(nil as Data?, forKey: key(name))
        store.set(nil as [Any]?, forKey: key(name))
        store.set(nil as [String: Any]?, forKey: key(name))
        store.set(nil as Date?, forKey: key(name))
        store.set(nil as Int?, forKey: key(name))
        store.set(Optional<Bool>.none, forKey: key(name))
    }

    func throughKeyValueCoding() {
        store.setValue("text", forKey: key("text"))
        store.setValue(12, forKey: key("number"))
        store.setValue([1, 2], forKey: key("array"))
        store.setValue(nil, forKey: key("gone"))
    }

    /// They compile, as values of any type; at run time they are refused.
    func refused(_ name: String) {
        store.set(Set([1, 2]), forKey: key(name))
        store.set([1: "one"], forKey: key(name))
        store.set(URL(string: "https://example.org") as Any?, forKey: key(name))
        store.set(UUID(), forKey: key(name))
        store.set(Weekday.friday, forKey: key(name))
        store.set(NSNull(), forKey: key(name))
        store.set([NSNull()], forKey: key(name))
        store.set(["address": URL(fileURLWithPath: "/")], forKey: key(name))
        store.set((1, 2), forKey: key(name))
    }
}

enum Weekday: String, CaseIterable {
    case friday, saturday
}
