// SPDX-License-Identifier: Apache-2.0

import ProcessHarness
import Ubiquity

extension DemoStory {
    /// The same level game on new devices, with what they wrote before they first met the account.
    func welcome(_ a: DemoDevice, _ game: LevelGame) async throws {
        DemoScreen.chapter("A fresh install overwrites nothing, unless its app asks for that")
        let c = try await newcomer("C", .serverWins)
        defer { c.close() }
        try await keep(a, c, game)
        let d = try await newcomer("D", .timestamps)
        defer { d.close() }
        try await overwrite(a, d, game)
    }

    /// An app that was never signed in, with a level of its own.
    private func newcomer(
        _ name: String, _ firstSync: UbiquityConfiguration.FirstSync
    ) async throws -> DemoDevice {
        let policy = firstSync == .serverWins ? "as apps do by default" : "first sync by timestamps"
        return try await step("\(name) is new, \(policy); a player there is at level 1") {
            let device = try DemoDevice(
                name, home: stage.path(name.lowercased()), firstSync: firstSync)
            device.store.set(Int64(1), forKey: LevelGame.key)
            guard device.store.synchronize() else {
                throw Trouble("\(name) did not save it")
            }
            return device
        }
    }

    private func keep(_ a: DemoDevice, _ c: DemoDevice, _ game: LevelGame) async throws {
        let seen = game.seen
        try await step("C signs in: the account's 13 stays, and C gets it") {
            try await servers.signIn("device C", home: c.home)
            try await c.store.initialSync()
            try await c.store.synchronizeNow()
            try await a.store.synchronizeNow()
            guard c.store.longLong(forKey: LevelGame.key) == 13, game.seen == seen else {
                throw Trouble("a fresh install has overwritten the level")
            }
        }
    }

    private func overwrite(_ a: DemoDevice, _ d: DemoDevice, _ game: LevelGame) async throws {
        let told = game.seen.count
        try await step("D signs in: its 1 was written later and wins; A is notified") {
            try await servers.signIn("device D", home: d.home)
            try await until("A's notification of level 1") {
                game.seen.dropFirst(told).contains(1)
            }
        }
        try await step("A's app compares and writes 13 again: both are at 13") {
            try await until("level 13 on both") {
                [a, d].allSatisfy { $0.store.longLong(forKey: LevelGame.key) == 13 }
                    && a.pendingKeys + d.pendingKeys == 0
            }
        }
    }
}
