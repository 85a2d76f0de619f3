// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Ubiquity
import UbiquityTesting

/// The library's history, on devices and a server in virtual time.
@Suite("The history of a store")
struct HistoryTests {
    private let two = TwoDevices()

    /// A minute passes after each write, and everybody gets it.
    private func write(_ writes: (() -> Void)...) async {
        for write in writes {
            write()
            await two.cloud.settle()
            await two.cloud.advance(by: .seconds(60))
        }
    }

    @Test func `has each value with its device, and what became of it`() async throws {
        await write {
            two.a.set("dark", forKey: "theme")
        } _: {
            two.b.set("light", forKey: "theme")
        } _: {
            two.a.removeObject(forKey: "theme")
        }
        let versions = try await two.b.history(forKey: "theme")
        #expect(versions.map { $0.value as? String } == [nil, "light", "dark"])
        #expect(versions.map(\.author.name) == ["phone", "laptop", "phone"])
        #expect(versions.map(\.author.isThisDevice) == [false, true, false])
        #expect(versions[0].outcome == .current)
        guard case .replaced(by: let author, at: let date) = versions[1].outcome else {
            Issue.record("\(versions[1].outcome)")
            return
        }
        #expect(author == versions[0].author)
        #expect(abs(date.timeIntervalSince(versions[0].date)) < 1)
        #expect(try await two.b.history(forKey: "theme", newest: 1).count == 1)
        #expect(try await two.b.history(forKey: "other").isEmpty)
    }

    @Test func `has on its own device what came too late to be sent`() async throws {
        two.laptop.goOffline()
        two.b.set("early", forKey: "k")
        await two.cloud.advance(by: .seconds(60))
        await write { two.a.set("late", forKey: "k") }
        two.laptop.goOnline()
        await two.cloud.settle()
        let versions = try await two.b.history(forKey: "k")
        #expect(versions.map { $0.value as? String } == ["late", "early"])
        #expect(
            versions.last?.outcome
                == .refused(reason: "a value that was written later was there already"))
        #expect(versions.map(\.author.name) == ["phone", "laptop"])
        #expect(try two.b.refusedWrites().isEmpty)
        try two.b.forgetRefusedWrites()
        #expect(try two.b.localHistory(forKey: "k").count == 2)
        try two.b.revert("k", to: versions[1])
        await two.cloud.settle()
        #expect(two.a.string(forKey: "k") == "early")
    }

    @Test func `without the server is what the device knows itself`() async throws {
        await write { two.a.set(1, forKey: "k") }
        two.phone.goOffline()
        two.a.set(2, forKey: "k")
        let error = await #expect(throws: UbiquityError.self) {
            try await two.a.history(forKey: "k")
        }
        #expect(error?.code == .unreachable)
        #expect(error?.description.hasPrefix("the history is on the server, and ") == true)
        let known = try two.a.localHistory(forKey: "k")
        #expect(known.map { $0.value as? Int } == [2, 1])
        #expect(known.map(\.outcome) == [.waiting, .current])
    }

    @Test func `shows what waits here before what the server has`() async throws {
        await write { two.a.set(1, forKey: "k") }
        two.cloud.server.delay = .seconds(20)
        two.a.set(2, forKey: "k")
        #expect(two.a.synchronize())
        let versions = try await two.a.history(forKey: "k")
        #expect(versions.map { $0.value as? Int } == [2, 1])
        #expect(versions.map(\.outcome) == [.waiting, .current])
    }

    @Test func `is gone back to by an ordinary write`() async throws {
        await write {
            two.a.set("dark", forKey: "theme")
        } _: {
            two.b.set("light", forKey: "theme")
        }
        let versions = try await two.a.history(forKey: "theme")
        try two.a.revert("theme", to: versions[1])
        await two.cloud.settle()
        #expect(two.b.string(forKey: "theme") == "dark")
        #expect(two.laptop.notifications.last?.news == News(reason: 0, keys: ["theme"]))
        try two.b.revert("theme", to: versions[0])
        await two.cloud.settle()
        #expect(two.a.string(forKey: "theme") == "light")
    }

    @Test func `of a counter goes back by what was counted, and what others count stays`()
        async throws
    {
        await write {
            two.a.increment(forKey: "n", by: 5)
        } _: {
            two.b.increment(forKey: "n", by: 3)
        }
        let versions = try await two.a.history(forKey: "n")
        #expect(versions.map { $0.value as? Int } == [8, 5])
        two.laptop.goOffline()
        two.b.increment(forKey: "n")
        try two.a.revert("n", to: versions[1])
        await two.cloud.settle()
        two.laptop.goOnline()
        await two.cloud.settle()
        #expect(two.a.longLong(forKey: "n") == 6)
        #expect(two.b.longLong(forKey: "n") == 6)
    }

    @Test func `of a key with an app's own rule is what the rule makes`() async throws {
        for store in [two.a, two.b] {
            store.setConflictPolicy(
                .custom { earlier, later in "\(earlier.value)+\(later.value)" }, forKey: "k")
        }
        two.laptop.goOffline()
        two.b.set("b", forKey: "k")
        await two.cloud.advance(by: .seconds(60))
        await write { two.a.set("a", forKey: "k") }
        two.laptop.goOnline()
        await two.cloud.settle()
        let versions = try await two.a.history(forKey: "k")
        #expect(versions.map { $0.value as? String } == ["b+a", "a"])
    }

    @Test func `has the whole store as it was, to go back to as one change`() async throws {
        await write {
            two.a.set(1, forKey: "old")
        } _: {
            two.a.set("x", forKey: "same")
        }
        let then = two.cloud.now
        await two.cloud.advance(by: .seconds(60))
        await write {
            try? two.b.performBatch { batch in
                try batch.set(2, forKey: "old")
                try batch.set(3, forKey: "new")
            }
        } _: {
            two.a.removeObject(forKey: "same")
        }
        let past = try await two.b.values(at: then)
        #expect(past.values["old"] as? Int == 1)
        #expect(past.values["same"] as? String == "x")
        #expect(past.values.count == 2)
        #expect(past.forgottenKeys.isEmpty)
        two.phone.forgetNotifications()
        try await two.b.revertAll(to: then)
        await two.cloud.settle()
        #expect(two.a.dictionaryRepresentation as NSDictionary == past.values as NSDictionary)
        #expect(
            two.phone.notifications.map(\.news) == [News(reason: 0, keys: ["new", "old", "same"])])
        let present = try await two.a.values(at: two.cloud.now)
        #expect(present.values as NSDictionary == past.values as NSDictionary)
    }

    @Test func `before anything was there is empty`() async throws {
        let then = two.cloud.now
        await two.cloud.advance(by: .seconds(60))
        await write { two.a.set(1, forKey: "k") }
        #expect(try await two.a.values(at: then).values.isEmpty)
        try await two.b.revertAll(to: then)
        await two.cloud.settle()
        #expect(two.a.dictionaryRepresentation.isEmpty)
    }

    @Test func `keeps nothing of the keys that are excluded, and going back leaves them alone`()
        async throws
    {
        var configuration = UbiquityConfiguration(identifier: "TEAM.com.example.secret")
        configuration.historyExcluded = ["token"]
        let (a, b) = (
            two.phone.openStore(configuration), two.laptop.openStore(configuration)
        )
        a.set("first", forKey: "token")
        a.set("x", forKey: "theme")
        await two.cloud.settle()
        let then = two.cloud.now
        await two.cloud.advance(by: .seconds(60))
        await write {
            a.set("second", forKey: "token")
        } _: {
            b.set("y", forKey: "theme")
        }
        #expect(try await a.history(forKey: "token").isEmpty)
        #expect(try await a.history(forKey: "theme").count == 2)
        let past = try await a.values(at: then)
        #expect(past.forgottenKeys == ["token"])
        try await a.revertAll(to: then)
        await two.cloud.settle()
        #expect(b.string(forKey: "token") == "second")
        #expect(b.string(forKey: "theme") == "x")
    }

    @Test func `keeps nothing of an excluded key that another process of the device sends`()
        async throws
    {
        let leader = two.phone.openStore("TEAM.com.example.secret")
        await two.cloud.settle()
        var configuration = UbiquityConfiguration(identifier: "TEAM.com.example.secret")
        configuration.historyExcluded = ["token"]
        let app = two.phone.newProcess("widget").openStore(configuration)
        await write {
            app.set("first", forKey: "token")
        } _: {
            app.set("second", forKey: "token")
        } _: {
            app.removeObject(forKey: "token")
        }
        #expect(leader.string(forKey: "token") == nil)
        #expect(try await leader.history(forKey: "token").isEmpty)
        await write {
            leader.set("for all to see", forKey: "token")
        }
        let versions = try await leader.history(forKey: "token")
        #expect(versions.map { $0.value as? String } == ["for all to see"])
    }

    @Test func `belongs to a device that is signed in`() async throws {
        let store = two.cloud.newDevice("tablet", isSignedIn: false).openStore("TEAM.com.example")
        let error = await #expect(throws: UbiquityError.self) {
            try await store.history(forKey: "k")
        }
        #expect(error?.code == .notSignedIn)
        let invalid = await #expect(throws: UbiquityError.self) {
            try await two.a.history(forKey: "")
        }
        #expect(invalid?.code == .invalid)
    }
}
