// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Testing
import Ubiquity

@testable import UbiquityDefaults

/// Preferences whose keys have a conflict policy, over a real server and real files.
@Suite struct `A mirrored key with a policy` {
    private static let keys: [MirroredKeys] = [
        .key("level", .maximum), .key("runs", .counter), .key("badges", .unionOfArrays),
        .key("chapters", .unionOfDictionaries),
        .key("note", .custom { "\($0.value)+\($1.value)" }),
    ]

    /// Both apps run; then each changes its preferences before it hears of the other, and both end up
    /// with the same.
    private func bothChange(
        _ first: (UserDefaults) -> Void, _ second: (UserDefaults) -> Void,
        until isRight: @escaping (UserDefaults) -> Bool
    ) async throws {
        try await Cloud.withTwoDevices { _, a, b in
            try await a.run(Self.keys) { mirrorA in
                try await b.run(Self.keys) { mirrorB in
                    try await mirrorA.store.initialSync()
                    try await mirrorB.store.initialSync()
                    first(a.defaults)
                    second(b.defaults)
                    mirrorA.update()
                    mirrorB.update()
                    try await until("both are right") {
                        isRight(a.defaults) && isRight(b.defaults)
                    }
                    try await until("all is sent") {
                        mirrorA.store.isSettled && mirrorB.store.isSettled
                    }
                    #expect(isRight(a.defaults))
                    #expect(isRight(b.defaults))
                }
            }
            // From the disks.
            for device in [a, b] {
                device.restart()
                try await device.run(Self.keys) { _ in #expect(isRight(device.defaults)) }
            }
        }
    }

    @Test func `has the highest level, without any code of the app's`() async throws {
        try await bothChange {
            $0.set(13, forKey: "level")
        } _: {
            $0.set(1, forKey: "level")
        } until: {
            $0.integer(forKey: "level") == 13
        }
    }

    @Test func `counts the starts of all devices`() async throws {
        try await bothChange {
            $0.set(3, forKey: "runs")
        } _: {
            $0.set(4, forKey: "runs")
        } until: {
            $0.integer(forKey: "runs") == 7
        }
    }

    @Test func `has the badges of both`() async throws {
        try await bothChange {
            $0.set(["a", "b"], forKey: "badges")
        } _: {
            $0.set(["b", "c"], forKey: "badges")
        } until: {
            Set($0.stringArray(forKey: "badges") ?? []) == ["a", "b", "c"]
                && $0.stringArray(forKey: "badges")?.count == 3
        }
    }

    @Test func `has the chapters of both`() async throws {
        try await bothChange {
            $0.set(["1": 10], forKey: "chapters")
        } _: {
            $0.set(["2": 20], forKey: "chapters")
        } until: {
            $0.dictionary(forKey: "chapters") as? [String: Int] == ["1": 10, "2": 20]
        }
    }

    @Test func `has what the app's own rule makes, also on a device that wrote nothing`()
        async throws
    {
        try await Cloud.withTwoDevices { cloud, a, b in
            let c = try Device()
            try await cloud.signIn(c)
            for (device, text) in [(a, "first"), (b, "second")] {
                // Not told of each other: each has only its own when it comes.
                device.defaults.set(text, forKey: "note")
            }
            try await a.run(Self.keys) { mirrorA in
                try await until("it is sent") {
                    mirrorA.store.string(forKey: "note") == "first" && mirrorA.store.isSettled
                }
            }
            try await b.run(Self.keys) { mirrorB in
                try await c.run(Self.keys) { mirrorC in
                    try await mirrorB.store.initialSync()
                    try await until("the note") {
                        [b, c].allSatisfy {
                            $0.defaults.string(forKey: "note") == "first+second"
                        }
                    }
                    withExtendedLifetime(mirrorC) {}
                }
            }
        }
    }

    /// The mirror writes down what it is about to count, and then tells the store.
    @Test func `that counts, counts once, wherever the process ends in between`() async throws {
        try await Cloud.withTwoDevices { _, a, b in
            try await a.run(Self.keys) { mirror in
                a.defaults.set(3, forKey: "runs")
                try await until("it is counted") {
                    mirror.update()
                    return mirror.store.longLong(forKey: "runs") == 3 && mirror.store.isSettled
                }
            }
            try a.copyStores()
            let before = a.defaults.persistentDomain(forName: a.suite)
            a.defaults.set(5, forKey: "runs")
            try await a.run(Self.keys) { mirror in
                await mirror.updateNow()
                try await until("it is sent") { mirror.store.isSettled }
            }
            try await b.run(Self.keys) { mirror in
                try await until("five") { b.defaults.integer(forKey: "runs") == 5 }
                b.defaults.set(6, forKey: "runs")
                await mirror.updateNow()
                try await until("it is sent") { mirror.store.isSettled }
            }
            // The store's disk did not get what the preferences' did.
            try a.restoreStores()
            try await expectRuns(6, on: a)
            // The preferences' disk did not get what the store's did: counted once more is not counted.
            a.defaults.setPersistentDomain(before ?? [:], forName: a.suite)
            try await expectRuns(6, on: a)
            // Who has an older copy counts on, and loses nothing.
            a.defaults.setPersistentDomain(before ?? [:], forName: a.suite)
            a.defaults.set(4, forKey: "runs")
            try await expectRuns(7, on: a)
            try await expectRuns(7, on: b)
        }
    }

    @Test func `that counts, says again what the store's disk never got`() async throws {
        let device = try Device()
        try await device.run(Self.keys) { mirror in
            device.defaults.set(3, forKey: "runs")
            await mirror.updateNow()
        }
        try device.copyStores()
        try await device.run(Self.keys) { mirror in
            mirror.set(5, forKey: "runs")
            await mirror.updateNow()
        }
        try device.restoreStores()
        try await device.run(Self.keys) { mirror in
            #expect(mirror.store.longLong(forKey: "runs") == 5)
            await mirror.updateNow()
            #expect(device.defaults.integer(forKey: "runs") == 5)
        }
    }

    @Test func `that counts, does not bring back what another device has begun anew`() async throws
    {
        try await Cloud.withTwoDevices { _, a, b in
            a.defaults.set(3, forKey: "runs")
            try await expectRuns(3, on: a)
            // An app without the policy, while the mirror's app is closed.
            func begin(at runs: Int64, having seen: Int64) async throws {
                try await b.run([.key("other")]) { mirror in
                    try await until("it is there") {
                        mirror.store.longLong(forKey: "runs") == seen
                    }
                    mirror.store.removeObject(forKey: "runs")
                    mirror.store.set(runs, forKey: "runs")
                    try await until("it is sent") { mirror.store.isSettled }
                }
            }
            try await begin(at: 1, having: 3)
            try await expectRuns(1, on: a)
            a.defaults.set(2, forKey: "runs")
            try await expectRuns(2, on: a)
            try await begin(at: 0, having: 2)
            try await expectRuns(0, on: a)
            a.defaults.set(1, forKey: "runs")
            try await expectRuns(1, on: a)
        }
    }

    private func expectRuns(_ runs: Int, on device: Device) async throws {
        device.restart()
        try await device.run(Self.keys) { mirror in
            try await until("the runs") {
                mirror.update()
                return device.defaults.integer(forKey: "runs") == runs
                    && mirror.store.longLong(forKey: "runs") == Int64(runs)
            }
            try await until("it is sent") { mirror.store.isSettled }
        }
    }

    @Test func `whose value does not fit says so, and the later write counts`() async throws {
        let device = try Device()
        try await device.run(Self.keys) { mirror in
            mirror.set(["no": "number"], forKey: "level")
            await mirror.updateNow()
            #expect(
                mirror.store.dictionary(forKey: "level") as? [String: String] == ["no": "number"])
            mirror.set(2, forKey: "level")
            await mirror.updateNow()
            #expect(mirror.store.longLong(forKey: "level") == 2)
        }
    }
}
