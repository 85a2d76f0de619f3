// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Synchronization
import Testing
import UbiquityCore

@testable import Ubiquity

/// Writes a value whose author knows of no other, as another device does.
private func write(_ text: String, to store: UbiquitousKeyValueStore) throws {
    try store.apply(.string(text), over: nil, forKey: "k")
}

private let joining = ConflictPolicy.custom { "\($0.value)+\($1.value)" }

@Suite struct `An app's own rule for conflicts` {
    @Test func `may read the store, write to it and synchronise it`() throws {
        let stage = try LocalStore()
        let store = stage.store
        let calls = Mutex(0)
        store.set("?", forKey: "separator")
        store.setConflictPolicy(
            .custom { earlier, later in
                calls.withLock { $0 += 1 }
                let separator = store.string(forKey: "separator") ?? ""
                store.increment(forKey: "conflicts")
                store.synchronize()
                return "\(earlier.value)\(separator)\(later.value)"
            }, forKey: "k")
        try write("a", to: store)
        try write("b", to: store)
        // The store's own queue may have been first to call the rule, and not be back yet.
        #expect(store.synchronize())
        #expect(store.string(forKey: "k") == "a?b")
        let count = calls.withLock(\.self)
        #expect(store.longLong(forKey: "conflicts") == count)
    }

    @Test func `may synchronise the store on the store's own queue`() throws {
        let stage = try LocalStore()
        let store = stage.store
        let isSynchronised = Mutex(false)
        // As when another device's value arrives: the engine has it, and the queue finds it.
        store.setConflictPolicy(
            .custom { earlier, later in
                if store.synchronize() { isSynchronised.withLock { $0 = true } }
                return "\(earlier.value)+\(later.value)"
            }, forKey: "k")
        for text in ["a", "b"] {
            let operation = MergeOperation(.register, from: nil, to: .string(text))
            _ = store.backing.driver.shared.write { engine, now throws(LimitViolation) in
                try engine.write([:], merging: [try! Key("k"): operation], at: now)
            }
        }
        #expect(store.string(forKey: "k") == "a", "the rule has not been called")
        #expect(store.synchronize())
        #expect(store.string(forKey: "k") == "a+b")
        let wasSynchronised = isSynchronised.withLock(\.self)
        #expect(wasSynchronised)
    }

    @Test func `applies at once to values from before it was set`() throws {
        let stage = try LocalStore()
        stage.store.setConflictPolicy(.custom { $1.value }, forKey: "k")
        try write("a", to: stage.store)
        try write("b", to: stage.store)
        #expect(stage.store.string(forKey: "k") == "b")
        stage.store.setConflictPolicy(joining, forKey: "k")
        #expect(stage.store.string(forKey: "k") == "a+b")
        stage.store.set("c", forKey: "k")
        #expect(stage.store.string(forKey: "k") == "c")
        #expect(stage.store.backing.driver.read { $0.hasConflict } == false)
    }

    @Test func `does not see a write lost that was made before the rule was called`() throws {
        let stage = try LocalStore()
        let store = stage.store
        store.setConflictPolicy(joining, forKey: "k")
        let first = MergeOperation(.register, from: nil, to: .string("a"))
        let arriving = MergeOperation(.register, from: nil, to: .string("b"))
        // All within one lock: "b" has come, the app still sees "a", and replaces what it sees.
        _ = store.backing.driver.shared.write { engine, now throws(LimitViolation) in
            let key = try! Key("k")
            try engine.write([:], merging: [key: first], at: now)
            try engine.write([:], merging: [key: arriving], at: now)
            #expect(engine[key] == .string("a"))
            try engine.write(key, .value(.string("c")), at: now)
        }
        store.synchronize()
        #expect(store.string(forKey: "k") == "b+c")
    }
}

extension UbiquityKeys {
    fileprivate static let reached = UbiquityKey("level", default: 1, policy: .maximum)
    fileprivate static let starts = UbiquityKey("starts", default: 0, policy: .counter)
    fileprivate static let draft = UbiquityKey<String?>("k", policy: joining)
}

@Suite struct `A key with a policy` {
    @Test func `applies it from its first use, however it is used`() throws {
        let stage = try LocalStore()
        let store = stage.store
        store[.reached] = 13
        store[.reached] = 2
        #expect(store[.reached] == 13)
        try store.set(4, for: .reached)
        try store.performBatch { try $0.set(5, for: .reached) }
        #expect(try store.value(for: .reached) == 13)
        try store.update(.starts) { $0 += 1 }
        #expect(store.backing.driver.read { $0.policy(of: try! Key("starts")) } == .counter)
    }

    @Test func `applies it in a batch and on reading alone`() throws {
        let stage = try LocalStore()
        try stage.store.performBatch { try $0.set(13, for: .reached) }
        #expect(stage.store.backing.driver.read { $0.policy(of: try! Key("level")) } == .maximum)
        stage.store.setConflictPolicy(.custom { $1.value }, forKey: "k")
        try write("a", to: stage.store)
        try write("b", to: stage.store)
        #expect(stage.store[.draft] == "a+b")
    }

    @Test func `leaves the policy that an app set for the store`() throws {
        let stage = try LocalStore()
        stage.store.setConflictPolicy(.latest, for: .reached)
        stage.store[.reached] = 13
        stage.store[.reached] = 2
        #expect(stage.store[.reached] == 2)
    }

    @Test func `opens no store for a test double`() {
        final class Double: UbiquitousKeyValueStore, @unchecked Sendable {
            override func object(forKey aKey: String) -> Any? { 7 }
        }
        let double = Double()
        #expect(double[.reached] == 7)
        #expect(Ubiquitous(.reached, store: double).wrappedValue == 7)
    }
}
