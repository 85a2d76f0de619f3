// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Testing
import Ubiquity
import UbiquityDefaults

/// Shows where the guides' glue goes wrong, and what a mirror does in the same places.
@Suite struct `The glue of the guides` {
    /// Two devices whose stores have completed their first sync.
    private func withTwoStores(
        _ body: (
            (device: Device, store: UbiquitousKeyValueStore),
            (device: Device, store: UbiquitousKeyValueStore)
        ) async throws -> Void
    ) async throws {
        try await Cloud.withTwoDevices { _, a, b in
            let (storeA, storeB) = (try a.openStore(), try b.openStore())
            defer {
                storeA.close()
                storeB.close()
            }
            for store in [storeA, storeB] { try await store.synchronizeNow() }
            try await body((a, storeA), (b, storeB))
        }
    }

    private func glue(
        _ on: (device: Device, store: UbiquitousKeyValueStore), _ prefix: String
    ) -> TutorialGlue {
        TutorialGlue(on.device.defaults, on.store, prefix: prefix)
    }

    private func mirror(
        _ on: (device: Device, store: UbiquitousKeyValueStore), _ prefix: String
    ) throws -> DefaultsMirror {
        try DefaultsMirror(
            .suite(on.device.suite), on.store, keys: [.prefix(prefix)], interval: .zero)
    }

    @Test(arguments: [true, false])
    func `overwrites good values on a fresh install, by registered defaults`(isMirrored: Bool)
        async throws
    {
        let prefix = "fresh\(isMirrored)."
        try await withTwoStores { a, b in
            a.store.set(13, forKey: prefix + "level")
            try await until("the level") { b.store.longLong(forKey: prefix + "level") == 13 }
            // The fresh install.
            b.device.defaults.register(defaults: [prefix + "level": 1])
            if isMirrored {
                let mirror = try mirror(b, prefix)
                defer { mirror.stop() }
                #expect(b.device.defaults.integer(forKey: prefix + "level") == 13)
                await mirror.updateNow()
                try await b.store.synchronizeNow()
                try await a.store.synchronizeNow()
                #expect(a.store.longLong(forKey: prefix + "level") == 13)
            } else {
                let glue = glue(b, prefix)
                defer { glue.stop() }
                glue.start()
                try await until("the damage") { a.store.longLong(forKey: prefix + "level") == 1 }
            }
        }
    }

    @Test(arguments: [true, false])
    func `loses deletions, and brings back what was deleted elsewhere`(isMirrored: Bool)
        async throws
    {
        let prefix = "gone\(isMirrored)."
        try await withTwoStores { a, b in
            a.store.set("old", forKey: prefix + "name")
            try await until("the name") { b.store.object(forKey: prefix + "name") != nil }
            b.device.defaults.set("old", forKey: prefix + "name")
            if isMirrored {
                let mirror = try mirror(b, prefix)
                defer { mirror.stop() }
                a.store.removeObject(forKey: prefix + "name")
                try await until("the deletion") { b.device.own.isEmpty }
                mirror.set(1, forKey: prefix + "other")
                try await until("the other") { a.store.object(forKey: prefix + "other") != nil }
                #expect(a.store.object(forKey: prefix + "name") == nil)
                mirror.removeObject(forKey: prefix + "other")
                try await until("the deletion") { a.store.object(forKey: prefix + "other") == nil }
            } else {
                let glue = glue(b, prefix)
                defer { glue.stop() }
                glue.start()
                a.store.removeObject(forKey: prefix + "name")
                // Nobody set it again.
                try await until("its return") {
                    a.store.isSettled && a.store.object(forKey: prefix + "name") != nil
                }
                b.device.defaults.removeObject(forKey: prefix + "name")
                glue.defaultsDidChange()
                try await b.store.synchronizeNow()
                #expect(b.store.object(forKey: prefix + "name") != nil)
            }
        }
    }

    /// Foundation on Linux does not write 1.0 over 1: a device that has the one cannot be given the
    /// other by `set` alone, and sends back its own.
    @Test(arguments: [true, false])
    func `sends back what it was sent, for ever where the two differ`(isMirrored: Bool) async throws
    {
        let prefix = "loop\(isMirrored)."
        try await withTwoStores { a, b in
            let traffic = [Traffic(a.store), Traffic(b.store)]
            a.device.defaults.set(1, forKey: prefix + "volume")
            b.device.defaults.set(1.0, forKey: prefix + "volume")
            if isMirrored {
                let mirrors = [try mirror(a, prefix), try mirror(b, prefix)]
                defer { for mirror in mirrors { mirror.stop() } }
                for _ in 0..<3 {
                    for (mirror, store) in zip(mirrors, [a.store, b.store]) {
                        await mirror.updateNow()
                        try await store.synchronizeNow()
                    }
                }
                #expect(a.store.value(prefix + "volume") == b.store.value(prefix + "volume"))
                #expect(traffic[0].writes.count + traffic[1].writes.count <= 2)
            } else {
                let glues = [glue(a, prefix), glue(b, prefix)]
                defer { for glue in glues { glue.stop() } }
                for glue in glues { glue.start() }
                try await until("ten echoes") {
                    traffic[0].writes.count >= 10 && traffic[1].writes.count >= 10
                }
            }
        }
    }
}
