// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Testing
import UbiquityCore

@testable import Ubiquity

/// A store that is open while the device is signed in, signed out, or signed in to another account.
@Suite struct `A store that is open while the sign-in changes` {
    @Test func `has the other account's values at once, and its own again when it returns`()
        async throws
    {
        let stage = try LocalStore()
        try stage.home.update { $0.signIn(.unreachable("ann")) }
        var changes = stage.store.changes.makeAsyncIterator()
        stage.store.set("ann's", forKey: "word")
        #expect(await changes.next() == UbiquityChange(origin: .own, keys: ["word"]))

        try stage.home.update { $0.signIn(.unreachable("bob")) }
        #expect(await changes.next() == UbiquityChange(origin: .accountChange, keys: ["word"]))
        #expect(stage.store.string(forKey: "word") == nil)
        stage.store.set("bob's", forKey: "word")
        #expect(stage.store.synchronize())
        #expect(await changes.next() == UbiquityChange(origin: .own, keys: ["word"]))

        try stage.home.update { $0.signIn(.unreachable("ann")) }
        #expect(await changes.next() == UbiquityChange(origin: .accountChange, keys: ["word"]))
        #expect(stage.store.string(forKey: "word") == "ann's")
        #expect(stage.store.status.pendingKeys == ["word"])
    }

    @Test
    func `keeps what was written in the moment of the change with the account it was written for`()
        async throws
    {
        let stage = try LocalStore()
        try stage.home.update { $0.signIn(.unreachable("ann")) }
        try await until("the sign-in") { stage.store.status.account == "ann" }
        let other = try DeviceHome(path: stage.folder.path)
        let writer = Task.detached {
            for number in 0..<2_000 { stage.store.set(Int64(number), forKey: "key\(number % 500)") }
        }
        try other.update { $0.signIn(.unreachable("bob")) }
        await writer.value
        try await until("bob") { stage.store.status.account == "bob" }
        let bobs = stage.store.dictionaryRepresentation
        try other.update { $0.signIn(.unreachable("ann")) }
        try await until("ann") { stage.store.status.account == "ann" }
        let anns = stage.store.dictionaryRepresentation
        // Each write went to one account, and none to neither.
        var last: [String: Int] = [:]
        for number in 0..<2_000 { last["key\(number % 500)"] = number }
        for (key, number) in last {
            let found = [anns[key], bobs[key]].compactMap { ($0 as? NSNumber)?.intValue }
            #expect(found.contains(number), "\(key)")
        }
    }

    @Test func `tells of a sign-out once, and keeps the values readable and writable`() async throws
    {
        let stage = try LocalStore()
        try stage.home.update { $0.signIn(.unreachable("ann")) }
        try await until("the sign-in") { stage.store.status.account == "ann" }
        stage.store.set(1, forKey: "a")
        var changes = stage.store.changes.makeAsyncIterator()
        try stage.home.update { $0.signOut() }
        #expect(await changes.next() == UbiquityChange(origin: .accountChange, keys: []))
        #expect(stage.store.longLong(forKey: "a") == 1)
        stage.store.set(2, forKey: "a")
        #expect(stage.store.synchronize())
        #expect(await changes.next() == UbiquityChange(origin: .own, keys: ["a"]))
        #expect(stage.store.status.connection == .signedOut)
    }

    @Test func `loses its values by a sign-out that wipes, and no file keeps them`() async throws {
        let stage = try LocalStore()
        try stage.home.update { $0.signIn(.unreachable("ann")) }
        try await until("the sign-in") { stage.store.status.account == "ann" }
        stage.store.set("a secret of ann's", forKey: "a")
        #expect(stage.store.synchronize())
        #expect(try stage.folder.contains("a secret of ann's"))
        var changes = stage.store.changes.makeAsyncIterator()
        #expect(try stage.home.endSignIn(wipes: true) == .unreachable("ann"))
        #expect(await changes.next() == UbiquityChange(origin: .accountChange, keys: ["a"]))
        #expect(stage.store.object(forKey: "a") == nil)
        stage.store.set("after", forKey: "a")
        #expect(stage.store.synchronize())
        #expect(try !stage.folder.contains("a secret of ann's"))
        #expect(try stage.folder.contains("after"))
    }

    @Test func `has no file that keeps them after the next start, where the wiping was cut off`()
        async throws
    {
        let folder = try TemporaryFolder()
        do {
            let stage = try LocalStore(in: folder)
            try stage.home.update { $0.signIn(.unreachable("ann")) }
            try await until("the sign-in") { stage.store.status.account == "ann" }
            stage.store.set("a secret of ann's", forKey: "a")
            stage.store.close()
            // As far as a process came that was killed then.
            try stage.home.update { _ = $0.signOutWiping() }
        }
        #expect(try folder.contains("a secret of ann's"))
        let next = try LocalStore(in: folder)
        // In one process, it may know the sign-in as it was for a moment.
        try await until("the sign-out") { next.store.object(forKey: "a") == nil }
        next.store.set("after", forKey: "a")
        #expect(next.store.synchronize())
        try await until("the end of the wiping") { try !folder.contains("a secret of ann's") }
        #expect(try folder.contains("after"))
    }

    @Test func `is told by a notification with the reason and the keys`() async throws {
        let stage = try LocalStore()
        try stage.home.update { $0.signIn(.unreachable("ann")) }
        try await until("the sign-in") { stage.store.status.account == "ann" }
        stage.store.set(1, forKey: "a")
        let observer = Observer(stage.store)
        try stage.home.update { $0.signIn(.unreachable("bob")) }
        try await until("the notification") { !observer.all.isEmpty }
        #expect(observer.all == [.init(NSUbiquitousKeyValueStoreAccountChange, ["a"], [:])])
    }
}
