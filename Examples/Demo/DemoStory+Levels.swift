// SPDX-License-Identifier: Apache-2.0

import ProcessHarness
import Synchronization
import Ubiquity
import UbiquityCore

extension DemoStory {
    /// The well-known example: the later write wins, and the app corrects it.
    func playLevels(_ a: DemoDevice, _ b: inout DemoDevice) async throws {
        DemoScreen.chapter("The later write wins, and an app may know better: level 13")
        let game = LevelGame(a.store)
        defer { game.end() }
        let closed = b
        try await step("B's app is closed; on A, the player reaches level 13") {
            closed.close()
            game.reach(13)
            try await until("its arrival at the server") { a.pendingKeys == 0 }
        }
        try await step("\(servers.name) \(servers.verb("shut")) down properly (SIGTERM)") {
            try await servers.stop()
        }
        try b.reopen()
        let offline = b
        try await step("B's app opens offline; later, a new player there is at level 1") {
            offline.store.set(Int64(1), forKey: LevelGame.key)
            // Earlier writes may wait again: that they were acknowledged need not be on the disk.
            let isSaved = offline.store.synchronize()
            let pending = offline.store.engineStatus.pendingKeys.map(\.name.string)
            guard isSaved, pending.contains(LevelGame.key) else {
                throw Trouble("B did not save it")
            }
        }
        try await step("\(servers.name) \(servers.verb("come")) back") {
            try await servers.start()
        }
        try await agree(a, offline, game)
        try await welcome(a, game)
    }

    private func agree(_ a: DemoDevice, _ b: DemoDevice, _ game: LevelGame) async throws {
        try await step("B's 1 is the later write and wins; A is notified") {
            try await until("A's notification of level 1") { game.seen.contains(1) }
        }
        try await step("A's app compares with its own record, writes 13: both are at 13") {
            try await until("level 13 on both") {
                [a, b].allSatisfy { $0.store.longLong(forKey: LevelGame.key) == 13 }
                    && a.pendingKeys + b.pendingKeys == 0
            }
        }
    }
}

/// An app that keeps a player's level in the store, and a record of its own beside it.
///
/// Shared state: its knowledge, guarded by a mutex, because the store reports changes on a queue of
/// its own.
final class LevelGame: Sendable {
    static let key = "level"

    private struct Knowledge {
        var record: Int64 = 0
        var seen: [Int64] = []
    }

    private let store: UbiquitousKeyValueStore
    private let knowledge = Mutex(Knowledge())
    private let listening = Mutex<Task<Void, Never>?>(nil)

    init(_ store: UbiquitousKeyValueStore) {
        self.store = store
        let changes = store.changes
        let task = Task {
            for await change in changes
            where change.origin != .own && change.keys.contains(Self.key) {
                changed()
            }
        }
        listening.withLock { $0 = task }
    }

    var seen: [Int64] { knowledge.withLock(\.seen) }

    func reach(_ level: Int64) {
        knowledge.withLock { $0.record = level }
        store.set(level, forKey: Self.key)
    }

    func end() { listening.withLock { $0?.cancel() } }

    /// Another device set the level. A level lower than the record cannot be right.
    private func changed() {
        let level = store.longLong(forKey: Self.key)
        let record = knowledge.withLock { knowledge in
            knowledge.seen.append(level)
            return knowledge.record
        }
        if level < record { store.set(record, forKey: Self.key) }
    }
}
