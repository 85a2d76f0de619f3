// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Testing
import Ubiquity
import UbiquityCore
import UbiquityDefaults

/// Keys, values and mirrors that cannot be.
@Suite struct `A mirror that is given what cannot be mirrored` {
    @Test func `leaves out a key that is too long and a value that does not fit, and says so once`()
        async throws
    {
        let device = try Device()
        let recorder = LogRecorder()
        let store = try device.openStore { $0.logger = recorder.logger }
        defer { store.close() }
        let long = "k." + String(repeating: "x", count: 63)
        device.defaults.set(1, forKey: long)
        device.defaults.set(Data(count: 1_048_577), forKey: "k.large")
        device.defaults.set(2, forKey: "k.good")
        let mirror = try DefaultsMirror(
            .suite(device.suite), store, keys: [.prefix("k.")], interval: .zero)
        defer { mirror.stop() }
        for _ in 0..<3 { await mirror.updateNow() }
        #expect(store.dictionaryRepresentation.keys.sorted() == ["k.good"])
        #expect(device.own.count == 3)
        var issues = mirror.issues.makeAsyncIterator()
        let found = [try await issues.next(), try await issues.next()].compactMap(\.self)
        #expect(Set(found.map(\.key)) == [long, "k.large"])
        #expect(found.allSatisfy { $0.kind == .refused })
        try await until("the log") { recorder.lines.count == 2 }
        #expect(recorder.lines.contains { $0.text.contains(long) })

        // As soon as it fits, it is mirrored.
        mirror.set(Data(count: 10), forKey: "k.large")
        await mirror.updateNow()
        #expect(store.data(forKey: "k.large")?.count == 10)
        #expect(recorder.lines.count == 2)
    }

    @Test func `sends what did not fit as soon as there is room`() async throws {
        let device = try Device()
        try await device.run(["k.large"]) { mirror in
            mirror.store.set(Data(count: 600_000), forKey: "other")
            mirror.set(Data(count: 600_000), forKey: "k.large")
            await mirror.updateNow()
            #expect(mirror.store.object(forKey: "k.large") == nil)
            mirror.store.removeObject(forKey: "other")
            await mirror.updateNow()
            #expect(mirror.store.data(forKey: "k.large")?.count == 600_000)
        }
    }

    @Test func `writes no date to the preferences that would make their file unreadable`()
        async throws
    {
        let device = try Device()
        try await device.run(["when", "theme"]) { mirror in
            mirror.set("dark", forKey: "theme")
            try mirror.store.write([Key("when"): .value(.array([.date(.nan)]))])
            await mirror.updateNow()
            mirror.set(Date(timeIntervalSinceReferenceDate: .infinity), forKey: "when")
            mirror.set(URL(fileURLWithPath: "/"), forKey: "when")
            await mirror.updateNow()
            #expect(device.own["when"] == nil)
            #expect(mirror.store.value("when") == .array([.date(.nan)]))
            device.restart()
            #expect(device.defaults.string(forKey: "theme") == "dark")
        }
    }

    @Test func `never mirrors the system's keys, whatever the pattern says`() async throws {
        let device = try Device()
        try await device.run([.matching { _ in true }]) { mirror in
            for key in ["NSQuitAlwaysKeepsWindows", "AppleLanguages", "com.apple.x", "theme"] {
                mirror.set(1, forKey: key)
            }
            await mirror.updateNow()
            await mirror.updateNow()
            #expect(mirror.store.dictionaryRepresentation.keys.sorted() == ["theme"])
        }
    }

    @Test func `cannot be made for no keys, all keys or the system's`() async throws {
        let device = try Device()
        let store = try device.openStore()
        defer { store.close() }
        let wrong: [[MirroredKeys]] = [
            [], [.prefix("")], ["AppleLanguages"], [""], ["theme", "UbiquityMirror:x"],
        ]
        for keys in wrong {
            let error = #expect(throws: UbiquityError.self) {
                try DefaultsMirror(.suite(device.suite), store, keys: keys)
            }
            #expect(error?.code == .invalid)
        }
        #expect(throws: UbiquityError.self) {
            try DefaultsMirror(.suite(""), store, keys: ["theme"])
        }
    }

    @Test func `is refused where another mirror has the key, until that one stops`() async throws {
        let (a, b) = (try Device(), try Device())
        let (storeA, storeB) = (try a.openStore(), try b.openStore())
        defer {
            storeA.close()
            storeB.close()
        }
        func mirror(
            _ device: Device, _ store: UbiquitousKeyValueStore, _ keys: [MirroredKeys]
        ) throws -> DefaultsMirror {
            try DefaultsMirror(.suite(device.suite), store, keys: keys, interval: .zero)
        }
        let first = try mirror(a, storeA, ["theme", .prefix("list.")])
        // The same preferences, or the same store.
        for keys: [MirroredKeys] in [["theme"], ["list.a"], [.prefix("li")], [.prefix("list.a")]] {
            let one = #expect(throws: UbiquityError.self) { try mirror(a, storeB, keys) }
            let other = #expect(throws: UbiquityError.self) { try mirror(b, storeA, keys) }
            #expect(one?.code == .refused)
            #expect(other?.code == .refused)
        }
        let apart = try mirror(a, storeA, ["size"])
        let elsewhere = try mirror(b, storeB, ["theme"])
        // What cannot be told before is told at the key.
        let pattern = try mirror(a, storeA, [.matching { $0.hasPrefix("list.") }])
        first.set(1, forKey: "list.a")
        await first.updateNow()
        await pattern.updateNow()
        var issues = pattern.issues.makeAsyncIterator()
        #expect(try await issues.next()?.kind == .taken)
        for mirror in [first, apart, elsewhere, pattern] { mirror.stop() }
        try mirror(a, storeA, ["theme"]).stop()
    }
}
