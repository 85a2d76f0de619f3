// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// A test double that overrides the three primitives and leaves the rest to the class.
final class DictionaryStore: NSUbiquitousKeyValueStore, @unchecked Sendable {
    private let lock = NSLock()
    private var values: [String: Any] = [:]
    private var removals: [String] = []

    var keys: Set<String> { lock.withLock { Set(values.keys) } }
    var removedKeys: [String] { lock.withLock { removals } }

    override func object(forKey aKey: String) -> Any? { lock.withLock { values[aKey] } }

    override func set(_ anObject: Any?, forKey aKey: String) {
        guard let anObject else { return removeObject(forKey: aKey) }
        lock.withLock { values[aKey] = anObject }
    }

    override func removeObject(forKey aKey: String) {
        lock.withLock {
            values[aKey] = nil
            removals.append(aKey)
        }
    }
}

/// A test double that overrides all there is.
final class RecordingStore: NSUbiquitousKeyValueStore, @unchecked Sendable {
    private static let standIn = RecordingStore()
    private var values: [String: Any] = [:]
    private(set) var calls: [String] = []
    var isAvailable = true

    override class var `default`: NSUbiquitousKeyValueStore { standIn }

    override init() { super.init() }

    override func object(forKey aKey: String) -> Any? { values[aKey] }
    override func string(forKey aKey: String) -> String? { values[aKey] as? String }
    override func array(forKey aKey: String) -> [Any]? { values[aKey] as? [Any] }
    override func dictionary(forKey aKey: String) -> [String: Any]? {
        values[aKey] as? [String: Any]
    }
    override func data(forKey aKey: String) -> Data? { values[aKey] as? Data }
    override func longLong(forKey aKey: String) -> Int64 { values[aKey] as? Int64 ?? 0 }
    override func double(forKey aKey: String) -> Double { values[aKey] as? Double ?? 0 }
    override func bool(forKey aKey: String) -> Bool { values[aKey] as? Bool ?? false }
    override func value(forKey key: String) -> Any? { values[key] }

    override func set(_ anObject: Any?, forKey aKey: String) { record("Any?", anObject, aKey) }
    override func set(_ aString: String?, forKey aKey: String) { record("String?", aString, aKey) }
    override func set(_ aData: Data?, forKey aKey: String) { record("Data?", aData, aKey) }
    override func set(_ anArray: [Any]?, forKey aKey: String) { record("[Any]?", anArray, aKey) }
    override func set(_ aDictionary: [String: Any]?, forKey aKey: String) {
        record("[String: Any]?", aDictionary, aKey)
    }
    override func set(_ value: Int64, forKey aKey: String) { record("Int64", value, aKey) }
    override func set(_ value: Double, forKey aKey: String) { record("Double", value, aKey) }
    override func set(_ value: Bool, forKey aKey: String) { record("Bool", value, aKey) }
    override func setValue(_ value: Any?, forKey key: String) { record("setValue", value, key) }
    override func removeObject(forKey aKey: String) { record("remove", nil, aKey) }

    override var dictionaryRepresentation: [String: Any] { values }

    override func synchronize() -> Bool {
        calls.append("synchronize")
        return isAvailable
    }

    private func record(_ call: String, _ value: Any?, _ key: String) {
        calls.append(call)
        values[key] = value
    }
}

/// The store itself, with a look at what goes through it.
class CountingStore: NSUbiquitousKeyValueStore, @unchecked Sendable {
    private let lock = NSLock()
    private var count = 0

    var writes: Int { lock.withLock { count } }

    override func set(_ anObject: Any?, forKey aKey: String) {
        lock.withLock { count += 1 }
        super.set(anObject, forKey: aKey)
    }
}

/// A subclass with a shared object and a setter of its own, under the names that the class has.
final class PrefixedStore: NSUbiquitousKeyValueStore, @unchecked Sendable {
    private static let only = PrefixedStore()
    override class var `default`: PrefixedStore { only }

    func set(_ value: Int, forKey key: String) { set(Int64(value), forKey: "prefixed." + key) }
}
