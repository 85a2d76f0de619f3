// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Observation
import Synchronization
import Testing
import UbiquityCore

@testable import Ubiquity

extension UbiquityKeys {
    fileprivate static let loudness = UbiquityKey("volume", default: 0.5)
    fileprivate static let title = UbiquityKey<String?>("name")
}

@Suite struct `The changes of a store` {
    @Test func `report own writes once per batch, with their origin`() async throws {
        let stage = try LocalStore()
        var changes = stage.store.changes.makeAsyncIterator()
        try stage.store.performBatch { batch in
            try batch.set(1, forKey: "a")
            try batch.set(0.7, for: .loudness)
        }
        #expect(await changes.next() == UbiquityChange(origin: .own, keys: ["a", "volume"]))
        #expect(stage.store[.loudness] == 0.7)
    }

    @Test func `lose no key for a reader that comes late, and keep them together`() async throws {
        let stage = try LocalStore()
        let sequence = stage.store.changes
        for number in 0..<300 { stage.store.set(Int64(number), forKey: "key\(number % 50)") }
        stage.store.synchronize()
        var keys: Set<String> = []
        for await change in sequence {
            #expect(change.origin == .own)
            keys.formUnion(change.keys)
            if keys.count == 50 { break }
        }
        #expect(stage.store.longLong(forKey: "key49") == 299)
    }

    @Test func `are told to every reader, and end for one that is cancelled`() async throws {
        let stage = try LocalStore()
        let readers = (0..<3).map { _ in
            let sequence = stage.store.changes
            return Task {
                for await _ in sequence { return true }
                return false
            }
        }
        readers[2].cancel()
        #expect(await readers[2].value == false)
        stage.store.set("x", forKey: "x")
        #expect(await readers[0].value)
        #expect(await readers[1].value)
    }

    @Test func `end when nobody holds the store any more`() async throws {
        var stage: LocalStore? = try LocalStore()
        let changes = stage!.store.changes
        stage = nil
        for await _ in changes { Issue.record("a change of a store that is gone") }
    }
}

@Suite struct `The values of a key` {
    @Test func `begin with the default and follow each change, an equal one passed over`()
        async throws
    {
        let stage = try LocalStore()
        var values = stage.store.values(for: .loudness).makeAsyncIterator()
        #expect(await values.next() == 0.5)
        stage.store.set("unrelated", forKey: "other")
        stage.store[.loudness] = 0.75
        #expect(await values.next() == 0.75)
        stage.store[.loudness] = 0.75
        stage.store.remove(.loudness)
        #expect(await values.next() == 0.5)
    }

    @Test func `follow an account change`() async throws {
        let stage = try LocalStore()
        try stage.home.update { $0.signIn(.unreachable("ann")) }
        stage.store[.title] = "Ann"
        var values = stage.store.values(for: .title).makeAsyncIterator()
        #expect(await values.next() == "Ann")
        try stage.home.update { $0.signIn(.unreachable("bob")) }
        #expect(await values.next() == .some(nil))
    }
}

@Suite struct `A wrapped property` {
    private struct Player {
        @Ubiquitous var volume: Double

        init(_ store: UbiquitousKeyValueStore) { _volume = Ubiquitous(.loudness, store: store) }
    }

    @Test func `is its key in the store`() async throws {
        let stage = try LocalStore()
        let player = Player(stage.store)
        #expect(player.volume == 0.5)
        #expect(!player.$volume.hasValue)
        player.volume = 0.25
        #expect(stage.store.double(forKey: "volume") == 0.25)
        stage.store.set(0.9, forKey: "volume")
        #expect(player.volume == 0.9)
        var values = player.$volume.values.makeAsyncIterator()
        #expect(await values.next() == 0.9)
        player.$volume.remove()
        #expect(player.volume == 0.5)
        #expect(stage.store.object(forKey: "volume") == nil)
    }
}

@MainActor @Suite struct `An observable store` {
    @Test func `tells readers of a key that it changed, and nobody else`() async throws {
        let stage = try LocalStore()
        let observable = ObservableStore(stage.store)
        let (volume, name) = (Signal(), Signal())
        withObservationTracking {
            _ = observable[.loudness]
        } onChange: {
            volume.fire()
        }
        withObservationTracking {
            _ = observable[.title]
        } onChange: {
            name.fire()
        }
        observable[.loudness] = 0.1
        #expect(volume.hasFired)
        #expect(!name.hasFired)
        #expect(observable[.loudness] == 0.1)
    }

    @Test func `tells of a change that came another way`() async throws {
        let stage = try LocalStore()
        try stage.home.update { $0.signIn(.unreachable("ann")) }
        let observable = ObservableStore(stage.store)
        observable[.title] = "Ann"
        let name = Signal()
        try await until("the own write's echo") { stage.store.status.account == "ann" }
        withObservationTracking {
            _ = observable[.title]
        } onChange: {
            name.fire()
        }
        try stage.home.update { $0.signIn(.unreachable("bob")) }
        try await name.wait()
        try await until("the other account's name") { observable[.title] == nil }
    }

    @Test func `tells of the status`() async throws {
        let stage = try LocalStore()
        let observable = ObservableStore(stage.store)
        #expect(observable.status.connection == .signedOut)
        try await Task.sleep(for: .milliseconds(50))
        let status = Signal()
        withObservationTracking {
            _ = observable.status
        } onChange: {
            status.fire()
        }
        try stage.home.update { $0.signIn(.unreachable("ann")) }
        try await status.wait()
        try await until("the account") { observable.status.account == "ann" }
    }

    @Test func `is released with its last holder`() async throws {
        let stage = try LocalStore()
        var observable: ObservableStore? = ObservableStore(stage.store)
        weak let weak = observable
        observable = nil
        stage.store.set(1, forKey: "x")
        try await until("the end") { weak == nil }
    }
}

@Suite struct `A property of a store` {
    private struct Player: Sendable {
        @Ubiquitous var loudness: Double
        @Ubiquitous var title: String?

        init(_ store: UbiquitousKeyValueStore) {
            _loudness = Ubiquitous(.loudness, store: store)
            _title = Ubiquitous(.title, store: store)
        }
    }

    @Observable final class Settings {
        @ObservationIgnored @Ubiquitous var loudness: Double

        init(_ store: UbiquitousKeyValueStore) {
            _loudness = Ubiquitous(.loudness, store: store)
        }
    }

    @Test func `tells whoever read it of a write through it, and nobody else`() throws {
        let stage = try LocalStore()
        let player = Player(stage.store)
        let (volume, name) = (Signal(), Signal())
        withObservationTracking {
            _ = player.loudness
        } onChange: {
            volume.fire()
        }
        withObservationTracking {
            _ = player.title
        } onChange: {
            name.fire()
        }
        player.loudness = 0.1
        #expect(volume.hasFired)
        #expect(!name.hasFired)
        #expect(player.loudness == 0.1)
    }

    @Test func `tells of a change that came another way, in an observable class too`()
        async throws
    {
        let stage = try LocalStore()
        let settings = Settings(stage.store)
        for number in 1...2 {
            let changed = Signal()
            withObservationTracking {
                _ = settings.loudness
            } onChange: {
                changed.fire()
            }
            stage.store.set(Double(number), forKey: "volume")
            try await changed.wait()
            #expect(settings.loudness == Double(number))
        }
    }

    @Test func `lets the store end`() async throws {
        var stage: LocalStore? = try LocalStore()
        weak let store = stage?.store.backing
        _ = Player(stage!.store).loudness
        stage = nil
        try await until("the end") { store == nil }
    }
}

@Suite struct `A batch` {
    @Test func `is written wholly, and reads its own writes before`() throws {
        let stage = try LocalStore()
        stage.store.set("old", forKey: "a")
        try stage.store.performBatch { batch in
            try batch.set("new", forKey: "a")
            try batch.set("b", forKey: "b")
            batch.removeObject(forKey: "b")
            #expect(batch.object(forKey: "a") as? String == "new")
            #expect(batch.object(forKey: "b") == nil)
            #expect(stage.store.string(forKey: "a") == "old")
        }
        #expect(stage.store.string(forKey: "a") == "new")
        #expect(stage.store.object(forKey: "b") == nil)
    }

    @Test func `writes nothing when its closure throws, or a part of it does not fit`() throws {
        struct Stop: Error {}
        let stage = try LocalStore()
        #expect(throws: Stop.self) {
            try stage.store.performBatch { batch in
                try batch.set(1, forKey: "a")
                throw Stop()
            }
        }
        #expect(throws: UbiquityError.self) {
            try stage.store.performBatch { batch in
                try batch.set(1, forKey: "a")
                try batch.set(1, forKey: String(repeating: "k", count: 65))
            }
        }
        #expect(throws: UbiquityError.self) {
            try stage.store.performBatch { batch in
                try batch.set(1, forKey: "a")
                try batch.set(String(repeating: "x", count: 1 << 20), forKey: "b")
            }
        }
        #expect(stage.store.dictionaryRepresentation.isEmpty)
    }

    @Test func `of all keys removes them at once`() async throws {
        let stage = try LocalStore()
        for number in 0..<10 { stage.store.set(Int64(number), forKey: "\(number)") }
        var changes = stage.store.changes.makeAsyncIterator()
        stage.store.removeAll()
        #expect(stage.store.dictionaryRepresentation.isEmpty)
        #expect(await changes.next()?.keys.count == 10)
    }
}
