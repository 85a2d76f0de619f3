// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Logging
import Testing
import Ubiquity
import UbiquityCore

/// A store that is read and written by typed keys.
struct TypedKeyTests {
    private let folder: TemporaryFolder
    private let log = LogRecorder()
    private let store: UbiquitousKeyValueStore

    init() throws {
        let log = log
        let local = try LocalStore { $0.logger = log.logger }
        (folder, store) = (local.folder, local.store)
    }

    // MARK: - Defaults

    @Test func `a key without a value reads as its default, and nothing is stored`() throws {
        #expect(store[.appVolume] == 0.8)
        #expect(store[.appNickname] == nil)
        #expect(store[.appGame] == AppGame())
        #expect(try store.value(for: .appVolume) == nil)
        #expect(try store.value(for: .appNickname) == .none)
        #expect(!store.hasValue(for: .appVolume))
        #expect(store.values.isEmpty)
        #expect(store.dictionaryRepresentation.isEmpty)
    }

    @Test func `a stored value wins over the default, also the default's own`() throws {
        store[.appVolume] = 0.8
        #expect(store.value("volume") == .real(0.8))
        #expect(try store.value(for: .appVolume) == 0.8)
        #expect(store.hasValue(for: .appVolume))
        store.remove(.appVolume)
        #expect(!store.hasValue(for: .appVolume))
        store.remove(.appVolume)
        #expect(store[.appVolume] == 0.8)
    }

    @Test func `two keys with one name and two defaults share a value`() {
        let other = UbiquityKey("volume", default: 0.1)
        #expect(store[other] == 0.1)
        store[.appVolume] = 0.5
        #expect(store[other] == 0.5)
    }

    @Test func `values change in place, where an app imports nothing but the library`() throws {
        #expect(turnUp(store) == 0.8 + 0.1)
        #expect(store.value("game") == .dictionary(["level": .integer(2)]))
        #expect(try store.value(for: .appNickname) == "nobody")
        store[.appGame].player = "Ann"
        #expect(store[.appGame] == AppGame(level: 2, player: "Ann"))
    }

    @Test func `nil removes the key`() throws {
        store[.appNickname] = "ann"
        store[.appNickname] = nil
        #expect(store.value("nickname") == nil)
        try store.set("bob", for: .appNickname)
        try store.set(nil, for: .appNickname)
        #expect(!store.hasValue(for: .appNickname))
        let level = UbiquityKey<Int?>("level", default: 5)
        store[level] = nil
        #expect(store[level] == 5)
        #expect(log.lines.isEmpty)
    }

    @Test func `what was written is there for another process that opens the store`() throws {
        store[.appGame] = AppGame(level: 7)
        #expect(store.synchronize())
        store.close()
        let again = try LocalStore(in: folder)
        #expect(again.store[.appGame] == AppGame(level: 7))
    }

    // MARK: - What others wrote

    @Test func `what the untyped setters wrote reads as the key's type`() {
        store.set(3 as Int64, forKey: "volume")
        #expect(store[.appVolume] == 3)
        store.set("0.25", forKey: "volume")
        #expect(store[.appVolume] == 0.25)
        store.set(2.0, forKey: "count")
        #expect(store[.appCount] == 2)
        store.set(["level": NSNumber(value: 4)], forKey: "game")
        #expect(store[.appGame] == AppGame(level: 4))
        #expect(log.lines.isEmpty)
    }

    @Test func `what the typed setters wrote reads with the untyped getters`() {
        store[.appVolume] = 0.5
        store[.appGame] = AppGame(level: 9, player: "Ann")
        #expect(store.double(forKey: "volume") == 0.5)
        #expect(store.dictionary(forKey: "game")?["level"] as? Int == 9)
    }

    @Test func `what cannot be read gives the default, stays, and is reported once`() throws {
        // A name of its own: once is once for each key of the process.
        let key = UbiquityKey("unreadable \(UUID())", default: 7)
        store.set(["a"], forKey: key.name)
        for _ in 1...3 { #expect(store[key] == 7) }
        let sentence =
            "the value of the key \"\(key.name)\" cannot be read: expected Int, found an array"
        #expect(log.lines == [.init(level: .error, text: sentence)])
        #expect(store.hasValue(for: key))
        #expect(store.value(key.name) == .array([.string("a")]))
        let error = #expect(throws: UbiquityError.self) { try store.value(for: key) }
        #expect(error?.code == .invalid)
        #expect(error?.description == sentence)
        store[key] = 8
        #expect(store[key] == 8)
        #expect(log.lines.count == 1)
    }

    @Test func `a text where a number is expected gives the default, and a strict read throws`()
        throws
    {
        let key = UbiquityKey("loud \(UUID())", default: 5)
        store.set("loud", forKey: key.name)
        #expect(store[key] == 5)
        let sentence =
            "the value of the key \"\(key.name)\" cannot be read: expected Int, found a string"
        #expect(log.lines == [.init(level: .error, text: sentence)])
        try store.update(key) { $0 += 1 }
        #expect(store.value(key.name) == .integer(6))
        store.set("6", forKey: key.name)
        #expect(store[key] == 6)
        let error = #expect(throws: UbiquityError.self) { try store.value(for: key) }
        #expect(error?.description == sentence)
        #expect(error?.code == .invalid)
    }

    // MARK: - Refusals

    @Test func `a value without a form is refused and reported, and the old one stays`() {
        store[.appMarks] = [1]
        store[.appMarks] = [1, nil]
        #expect(store[.appMarks] == [1])
        #expect(log.lines.count == 1)
        #expect(
            log.lines.first?.text.contains("marks[1]: nil is not a property-list value") == true)
        let error = #expect(throws: UbiquityError.self) { try store.set([nil], for: .appMarks) }
        #expect(error?.code == .invalid)
        #expect(store[.appMarks] == [1])
        #expect(log.lines.count == 1)
    }

    @Test func `a key that cannot be one reads as its default, and its writes are refused`() {
        for name in ["", String(repeating: "x", count: 65)] {
            let key = UbiquityKey(name, default: 1)
            store[key] = 2
            #expect(store[key] == 1)
            #expect(!store.hasValue(for: key))
            let error = #expect(throws: UbiquityError.self) { try store.set(2, for: key) }
            #expect(error?.code == .invalid)
        }
        #expect(log.lines.count == 2)
    }

    @Test func `a value that does not fit into the store is refused`() {
        let key = UbiquityKey("big", default: Data())
        let error = #expect(throws: UbiquityError.self) {
            try store.set(Data(count: 1_048_577), for: key)
        }
        #expect(error?.code == .refused)
        #expect(store[key].isEmpty)
    }

    // MARK: - Test doubles

    private final class StoreDouble: UbiquitousKeyValueStore, @unchecked Sendable {
        var kept: [String: Any] = [:]
        override func object(forKey aKey: String) -> Any? { kept[aKey] }
        override func set(_ anObject: Any?, forKey aKey: String) { kept[aKey] = anObject }
        override func removeObject(forKey aKey: String) { kept[aKey] = nil }
    }

    @Test func `a subclass that overrides the untyped primitives has the typed values too`() throws
    {
        let double = StoreDouble()
        double[.appVolume] = 0.5
        double[.appGame].level = 3
        try double.set("ann", for: .appNickname)
        #expect(double.kept["volume"] as? NSNumber == 0.5)
        #expect((double.kept["game"] as? [String: Any])?["level"] as? Int == 3)
        #expect(double[.appNickname] == "ann")
        double.kept["volume"] = 2
        #expect(double[.appVolume] == 2)
        #expect(double.hasValue(for: .appVolume))
        double[.appNickname] = nil
        double.remove(.appVolume)
        #expect(double.kept.keys.sorted() == ["game"])
    }
}
