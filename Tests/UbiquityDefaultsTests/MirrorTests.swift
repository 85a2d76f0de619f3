// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Testing
import Ubiquity
import UbiquityCore
import UbiquityDefaults

private struct MirroredTheme: Codable {
    var name: String
    var size: Int
}

extension UbiquityKeys {
    fileprivate static let mirroredTheme = UbiquityKey<MirroredTheme?>("theme")
    fileprivate static let mirroredLevel = UbiquityKey("level", default: 1, policy: .maximum)
}

private struct MirroredSettings {
    @Mirrored var theme: MirroredTheme?
    @Mirrored var level: Int

    init(_ mirror: DefaultsMirror) {
        _theme = Mirrored(.mirroredTheme, in: mirror)
        _level = Mirrored(.mirroredLevel, in: mirror)
    }
}

/// Two devices of one person, each with an app whose preferences are mirrored.
@Suite struct `Preferences that are mirrored` {
    @Test func `have no registered default of the store, whose keys have none of theirs`()
        async throws
    {
        try await Cloud.withTwoDevices { _, a, b in
            try await a.run(["theme", "registered in one test"]) { mirror in
                mirror.store.register(defaults: ["theme": "light"])
                // Of the whole process, and so of all tests, on Linux.
                a.defaults.register(defaults: ["registered in one test": 5])
                await mirror.updateNow()
                #expect(a.own.isEmpty && mirror.store.values.isEmpty)
                #expect(mirror.store.string(forKey: "theme") == "light")
                mirror.set("light", forKey: "theme")
                // Not before the first sync.
                try await until("the theme in the store") { mirror.store.values.count == 1 }
                mirror.removeObject(forKey: "theme")
                await mirror.updateNow()
                #expect(a.own.isEmpty && mirror.store.values.isEmpty)
                #expect(mirror.store.string(forKey: "theme") == "light")
            }
        }
    }

    @Test func `follow a change, a deletion, and an array of dictionaries, both ways`() async throws
    {
        try await Cloud.withTwoDevices { _, a, b in
            try await a.run(["theme", .prefix("list.")]) { mirrorA in
                try await b.run(["theme", .prefix("list.")]) { mirrorB in
                    mirrorA.set("dark", forKey: "theme")
                    try await until("the theme") { b.defaults.string(forKey: "theme") == "dark" }

                    b.defaults.set("light", forKey: "theme")
                    b.defaults.set([["name": "one", "done": true, "count": 1]], forKey: "list.a")
                    b.defaults.set("not mirrored", forKey: "other")
                    mirrorB.update()
                    try await until("the theme") { a.defaults.string(forKey: "theme") == "light" }
                    try await until("the list") { a.defaults.object(forKey: "list.a") != nil }
                    #expect(a.own["other"] == nil)
                    let list = try PropertyListValue(try #require(a.own["list.a"]))
                    #expect(
                        list
                            == .array([
                                .dictionary([
                                    "name": .string("one"), "done": .boolean(true),
                                    "count": .integer(1),
                                ])
                            ]))

                    a.defaults.removeObject(forKey: "list.a")
                    mirrorA.removeObject(forKey: "theme")
                    try await until("the deletions") {
                        b.own["theme"] == nil && b.own["list.a"] == nil
                    }
                    await mirrorB.updateNow()
                    #expect(mirrorA.store.object(forKey: "theme") == nil)
                    #expect(b.own.keys.sorted() == ["other"])
                }
            }
        }
    }

    @Test func `can be properties with keys of the store, policies included`() async throws {
        try await Cloud.withTwoDevices { _, a, b in
            try await a.run([.key(.mirroredTheme), .key(.mirroredLevel)]) { mirrorA in
                try await b.run([.key(.mirroredTheme), .key(.mirroredLevel)]) { mirrorB in
                    let (one, other) = (MirroredSettings(mirrorA), MirroredSettings(mirrorB))
                    #expect(one.level == 1)
                    one.theme = MirroredTheme(name: "dark", size: 14)
                    one.level = 13
                    try await until("the theme") { other.theme?.size == 14 }
                    try await until("the level") { other.level == 13 }
                    other.level = 2
                    await mirrorB.updateNow()
                    #expect(other.level == 13)
                    other.theme = nil
                    try await until("the removal") { a.own["theme"] == nil }
                    #expect(one.theme == nil)
                }
            }
        }
    }

    /// Values that Foundation on Linux treats differently, also inside containers.
    private static let values: [(String, PropertyListValue)] = [
        ("bool", .boolean(true)), ("one", .integer(1)), ("real", .real(1)), ("half", .real(0.5)),
        ("small", .integer(.min)), ("large", .unsigned(.max)), ("nan", .real(.nan)),
        ("zero", .real(-0.0)), ("endless", .real(-.infinity)), ("date", .date(7.75)),
        ("data", .data([0, 255])), ("text", .string("a\u{1}\r\n<&]]>\u{1F600}")),
        ("empty", .dictionary([:])),
        (
            "nested",
            .array([.array([.boolean(false), .integer(0)]), .dictionary(["é": .date(1)])])
        ),
    ]

    @Test func `have every type as it was, and once restarted take none for a change`() async throws
    {
        let device = try Device()
        let store = try device.openStore()
        defer { store.close() }
        try store.write(
            Dictionary(uniqueKeysWithValues: Self.values.map { (try! Key($0.0), .value($0.1)) }))
        let before = store.values
        for _ in 0..<2 {
            let mirror = try DefaultsMirror(
                .suite(device.suite), store, keys: [.matching { _ in true }], interval: .zero)
            defer { mirror.stop() }
            #expect(device.own.count == Self.values.count)
            for (name, value) in Self.values {
                let local = try PropertyListValue(try #require(device.own[name]))
                #expect(local.preferencesForm == value.preferencesForm, "\(name)")
            }
            await mirror.updateNow()
            #expect(store.values == before)
            device.restart()
        }
    }

    @Test func `turn a number into an equal one of another type`() async throws {
        let device = try Device()
        let store = try device.openStore()
        defer { store.close() }
        let mirror = try DefaultsMirror(.suite(device.suite), store, keys: ["n"], interval: .zero)
        defer { mirror.stop() }
        let values: [PropertyListValue] = [
            .integer(1), .real(1), .boolean(true), .integer(1), .array([.integer(1)]),
            .array([.real(1)]), .dictionary(["a": .real(0)]), .dictionary(["a": .integer(0)]),
        ]
        for value in values {
            store.set(value.boxed, forKey: "n")
            await mirror.updateNow()
            #expect(try PropertyListValue(try #require(device.own["n"])) == value)
            #expect(store.value("n") == value)
        }
    }

    @Test func `cause no traffic where nothing changed, and a change causes one write`()
        async throws
    {
        try await Cloud.withTwoDevices { _, a, b in
            try await a.run([.prefix("k")]) { mirrorA in
                try await b.run([.prefix("k")]) { mirrorB in
                    let traffic = [Traffic(mirrorA.store), Traffic(mirrorB.store)]
                    for number in 0..<20 { a.defaults.set(number, forKey: "k\(number)") }
                    await mirrorA.updateNow()
                    try await until("all keys") { b.own.count == 20 }
                    for _ in 0..<5 {
                        for number in 0..<20 { b.defaults.set(number, forKey: "k\(number)") }
                        mirrorB.set(3, forKey: "k3")
                        await mirrorB.updateNow()
                        await mirrorA.updateNow()
                        _ = mirrorB.store.synchronize()
                    }
                    b.defaults.set("last", forKey: "k0")
                    await mirrorB.updateNow()
                    try await until("the last") { a.defaults.string(forKey: "k0") == "last" }
                    await mirrorA.updateNow()
                    #expect(traffic[0].writes.count == 20)
                    #expect(traffic[1].writes == ["k0"])
                }
            }
        }
    }

    @Test func `are mirrored by policies that the store is told of, each key by its first`()
        async throws
    {
        let device = try Device()
        let keys: [MirroredKeys] = [
            "theme", .key("level", .maximum), .prefix("set.", .unionOfArrays),
            .matching(.counter) { $0.hasSuffix(".count") },
        ]
        try await device.run(keys) { mirror in
            mirror.set(5, forKey: "level")
            mirror.set(["a"], forKey: "set.count")
            mirror.set(1, forKey: "runs.count")
            mirror.set(1, forKey: "runs")
            await mirror.updateNow()
            #expect(
                mirror.store.dictionaryRepresentation.keys.sorted() == [
                    "level", "runs.count", "set.count",
                ])
        }
    }
}
