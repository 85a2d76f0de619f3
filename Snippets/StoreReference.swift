// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Ubiquity
import UbiquityTesting

/// The examples in the store's doc comments, run on a device of a test's cloud.
struct StoreReference {
    let cloud = TestCloud()
    let store: UbiquitousKeyValueStore

    init() { store = cloud.newDevice("phone").openStore("TEAMID.com.example.notes") }

    // MARK: - Opening

    @Test func `the app's default store`() {
        store.asDefault {
            // snippet.store
            let store = UbiquitousKeyValueStore.default
            store.set("dark", forKey: "theme")
            print("The theme is \(store.string(forKey: "theme") ?? "light").")
            // snippet.end
        }
        #expect(store.string(forKey: "theme") == "dark")
    }

    func configure() throws {
        // snippet.configure-default
        // First of all, before anything uses the default store:
        try UbiquitousKeyValueStore.configureDefault(
            UbiquityConfiguration(identifier: "TEAMID.com.example.notes"))
        // snippet.end
    }

    // snippet.default
    func startAgain(in store: UbiquitousKeyValueStore = .default) {
        store.removeObject(forKey: "lastPage")
    }
    // snippet.end

    func open() throws {
        // snippet.init-identifier
        let shared = try UbiquitousKeyValueStore(identifier: "TEAMID.com.example.suite")
        shared.set("de", forKey: "language")
        // snippet.end
    }

    func openConfigured() throws -> UbiquitousKeyValueStore {
        // snippet.init-configuration
        var configuration = UbiquityConfiguration(identifier: "TEAMID.com.example.notes")
        configuration.firstSync = .timestamps
        let store = try UbiquitousKeyValueStore(configuration: configuration)
        // snippet.end
        return store
    }

    // MARK: - Reading

    @Test func `values are read by type`() throws {
        store.set(["milk", "bread"], forKey: "list")
        store.set(["width": 800, "height": 600], forKey: "window")
        store.set(Date(timeIntervalSince1970: 0), forKey: "lastBackup")
        store.set(12, forKey: "level")
        store.set(true, forKey: "isMuted")
        // snippet.object
        if let date = store.object(forKey: "lastBackup") as? Date {
            print("The last backup was made \(date).")
        }
        // snippet.end
        // snippet.string
        let theme = store.string(forKey: "theme") ?? "light"
        // snippet.end
        // snippet.array
        let list = store.array(forKey: "list") as? [String] ?? []
        // snippet.end
        // snippet.dictionary
        let window = store.dictionary(forKey: "window") ?? [:]
        let width = window["width"] as? Double ?? 640
        // snippet.end
        // snippet.data
        let cover = store.data(forKey: "cover") ?? Data()
        // snippet.end
        // snippet.longLong
        let level = Int(store.longLong(forKey: "level"))  // 0 before the first game
        // snippet.end
        // snippet.double
        // An app for which 0 is no volume must ask whether there is one.
        let volume = store.object(forKey: "volume") == nil ? 0.8 : store.double(forKey: "volume")
        // snippet.end
        // snippet.bool
        let isMuted = store.bool(forKey: "isMuted")  // false before it is set
        // snippet.end
        #expect((theme, list, width) == ("light", ["milk", "bread"], 800))
        #expect((cover, level, volume, isMuted) == (Data(), 12, 0.8, true))
    }

    @Test func `all keys with a prefix`() {
        store.set("Buy milk", forKey: "note.1")
        // snippet.dictionaryRepresentation
        let notes = store.dictionaryRepresentation.filter { $0.key.hasPrefix("note.") }
        print("\(notes.count) notes")
        // snippet.end
        #expect(notes.count == 1)
    }

    // MARK: - Writing

    @Test func `values are written by type`() {
        // snippet.set-object
        store.set(Date(), forKey: "lastBackup")
        store.set(nil as Any?, forKey: "lastError")  // removes it
        // snippet.end
        // snippet.set-string
        store.set("dark", forKey: "theme")
        // snippet.end
        // snippet.set-data
        store.set(Data([0x89, 0x50]), forKey: "cover")  // a few kilobytes at most
        // snippet.end
        // snippet.set-array
        // The last write of the whole list wins, so an app with one key per item loses less.
        store.set(["milk", "bread"], forKey: "list")
        // snippet.end
        // snippet.set-dictionary
        store.set(["width": 800, "height": 600], forKey: "window")
        // snippet.end
        // snippet.set-int64
        let fileID: Int64 = 4_294_967_296
        store.set(fileID, forKey: "lastFile")
        // snippet.end
        // snippet.set-int
        store.set(12, forKey: "level")
        // snippet.end
        // snippet.set-double
        store.set(0.5, forKey: "volume")
        // snippet.end
        // snippet.set-bool
        store.set(true, forKey: "isMuted")
        // snippet.end
        #expect(
            store.dictionaryRepresentation.keys.sorted() == [
                "cover", "isMuted", "lastBackup", "lastFile", "level", "list", "theme", "volume",
                "window",
            ])
    }

    @Test func `a key is removed`() {
        store.set("dark", forKey: "theme")
        // snippet.removeObject
        store.removeObject(forKey: "theme")
        assert(store.object(forKey: "theme") == nil)
        // snippet.end
        #expect(store.object(forKey: "theme") == nil)
    }

    @Test func `a write that must survive a crash`() {
        // snippet.synchronize
        store.set("https://swift.org", forKey: "bookmark")
        guard store.synchronize() else {
            return print("Not saved: \(store.status.diskError ?? "there is no identifier")")
        }
        // snippet.end
        #expect(store.string(forKey: "bookmark") != nil)
    }

    // MARK: - Transactions

    @Test func `two keys change together`() throws {
        // snippet.performBatch
        try store.performBatch { batch in
            try batch.set("Zoe", forKey: "player")
            try batch.set(12, forKey: "level")
        }
        // snippet.end
        // snippet.batch
        try store.performBatch { batch in
            let level = batch.object(forKey: "level") as? Int ?? 0
            try batch.set(level + 1, forKey: "level")
            batch.removeObject(forKey: "hint")
        }
        // snippet.end
        #expect(store.longLong(forKey: "level") == 13)
        // snippet.removeAll
        store.removeAll()  // on all devices
        assert(store.dictionaryRepresentation.isEmpty)
        // snippet.end
        #expect(store.dictionaryRepresentation.isEmpty)
    }

    @Test func `defaults that no device gets`() {
        // snippet.register
        store.register(defaults: ["theme": "light", "volume": 0.8])
        print(store.double(forKey: "volume"))  // 0.8, until a device sets another
        // snippet.end
        #expect(store.double(forKey: "volume") == 0.8)
        #expect(store.status.pendingKeys.isEmpty && store.status.bytes == 0)
    }

    // MARK: - Conflicts

    @Test func `policies keep the best level and every start`() {
        // snippet.setConflictPolicy
        // When the app starts, before it uses the keys:
        store.setConflictPolicy(.maximum, forKey: "level")
        store.setConflictPolicy(.unionOfArrays, forKey: "badges")
        // snippet.end
        // snippet.increment
        store.increment(forKey: "starts")
        store.increment(forKey: "coins", by: -5)
        // snippet.end
        #expect((store.longLong(forKey: "starts"), store.longLong(forKey: "coins")) == (1, -5))
    }

    // MARK: - Observing

    @Test func `the notification names the keys`() {
        let other = cloud.newDevice("laptop").openStore("TEAMID.com.example.notes")
        // snippet.notification
        let observer = NotificationCenter.default.addObserver(
            forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
            queue: nil
        ) { notification in
            let keys = notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String]
            print("changed elsewhere: \(keys ?? [])")
        }
        // snippet.end
        other.set("dark", forKey: "theme")
        cloud.settle()
        #expect(store.string(forKey: "theme") == "dark")
        NotificationCenter.default.removeObserver(observer)
    }

    func followChanges() async {
        // snippet.changes
        for await change in store.changes where change.keys.contains("theme") {
            print("The theme is \(store.string(forKey: "theme") ?? "light") now.")
        }
        // snippet.end
    }

    func followOthers() async {
        // snippet.change
        for await change in store.changes {
            switch change.origin {
            case .own: continue
            case .quotaViolation: print("No room for \(change.keys).")
            case .elsewhere, .initialSync, .accountChange: print("Redraw \(change.keys).")
            }
        }
        // snippet.end
    }

    @Test func `a change is made for a test of the app's own`() {
        // snippet.change-init
        let change = UbiquityChange(origin: .elsewhere, keys: ["theme"])
        // snippet.end
        #expect(change.keys == ["theme"])
    }

    // MARK: - Sync

    @Test func `the sync button`() async {
        store.set("dark", forKey: "theme")
        // snippet.synchronizeNow
        do {
            try await store.synchronizeNow()
            print("Everything is on the server.")
        } catch {
            print("Saved here, and sent later: \(error)")
        }
        // snippet.end
        #expect(store.status.pendingKeys.isEmpty)
    }

    @Test func `a first start waits for the account's values`() async throws {
        // snippet.initialSync
        try await store.initialSync()
        if store.object(forKey: "player") == nil {
            print("Welcome! What is your name?")
        }
        // snippet.end
        #expect(store.status.isInitialSyncComplete)
    }

    @Test func `the status says whether it works`() {
        // snippet.status
        let status = store.status
        print("\(status.connection), \(status.pendingKeys.count) keys to send")
        print("\(status.bytes) of \(status.bytesMax) bytes")
        // snippet.end
        #expect(status.pendingKeys.isEmpty)
    }

    // snippet.status-sentence
    func sentence(for status: UbiquityStatus) -> String {
        switch status.connection {
        case .connected, .polling: "Synced."
        case .connecting: "Connecting…"
        case .waiting: "Offline: \(status.lastError ?? "no server")"
        case .signedOut, .unauthorized: "Sign in to sync."
        case .locked: "This device needs the account's key."
        case .notConfigured: "This app has no store identifier."
        }
    }
    // snippet.end

    func followStatus() async {
        // snippet.statuses
        for await status in store.statuses {
            print(status.pendingKeys.isEmpty ? "synced" : "syncing")
        }
        // snippet.end
    }

    func followErrors() async {
        // snippet.errors
        for await error in store.errors {
            print("\(error.code): \(error)")
        }
        // snippet.end
    }

    @Test func `an error has a code and a sentence`() {
        let level = UbiquityKey("level", default: 1)
        // snippet.error
        do {
            try store.set(12, for: level)
        } catch let error as UbiquityError where error.code == .refused {
            print("The store is full: \(error)")
        } catch {
            print("\(error)")
        }
        // snippet.end
        #expect(store.longLong(forKey: "level") == 12)
    }

    @Test func `what the server refused can be rescued`() throws {
        // snippet.refusedWrites
        for write in try store.refusedWrites() {
            print("\(write.key), written \(write.date), was refused: \(write.reason)")
        }
        // snippet.end
        // snippet.refusedWrite
        let drafts = try store.refusedWrites()
            .filter { $0.key.hasPrefix("draft.") }
            .compactMap { $0.value as? String }
        // snippet.end
        #expect(drafts.isEmpty)
        // snippet.forgetRefusedWrites
        let lost = try store.refusedWrites().map { "\($0.key): \($0.reason)" }
        print(lost.joined(separator: "\n"))
        try store.forgetRefusedWrites()
        // snippet.end
    }

    // MARK: - Deliveries

    func followDeliveries() async {
        // snippet.deliveries
        for await delivery in store.deliveries {
            print(delivery)  // on 2 of 3 devices; laptop was last seen on 2026-11-17
        }
        // snippet.end
    }

    func isOnEveryDevice() async throws -> Bool {
        // snippet.delivery
        let delivery = try await store.delivery(of: "shoppingList")
        let missing = delivery.devices.filter { !$0.isCurrent }.map(\.name)
        print(missing.isEmpty ? "on all devices" : "not on \(missing.joined(separator: ", "))")
        // snippet.end
        return missing.isEmpty
    }

    // snippet.delivery-devices
    func summary(of delivery: UbiquityDelivery) -> [String] {
        delivery.devices.map { device in
            "\(device.name): \(device.changesBehind) behind, last seen \(device.lastSeen)"
        }
    }
    // snippet.end

    // MARK: - History

    func printHistory() async throws {
        // snippet.history
        for version in try await store.history(forKey: "draft", newest: 10) {
            print("\(version.date), \(version.author.name ?? "?"): \(version.value ?? "removed")")
        }
        // snippet.end
    }

    @Test func `a device knows its own versions`() throws {
        store.set("dark", forKey: "theme")
        // snippet.localHistory
        let versions = try store.localHistory(forKey: "theme")
        let isSent = versions.allSatisfy { $0.outcome != .waiting }
        // snippet.end
        #expect(!isSent)
    }

    // snippet.version
    func label(of version: UbiquityVersion) -> String {
        switch version.outcome {
        case .current: "current"
        case .waiting: "not sent yet"
        case .replaced(let author, let date): "until \(date), then \(author.name ?? author.id)"
        case .lost(let author, _): "overtaken by \(author.name ?? author.id)"
        case .refused(let reason): reason
        case .gap: "not known any more"
        }
    }
    // snippet.end

    func previewYesterday() async throws {
        // snippet.values-at
        let yesterday = try await store.values(at: Date(timeIntervalSinceNow: -86_400))
        print("The theme was \(yesterday.values["theme"] ?? "not set").")
        // snippet.end
    }

    // snippet.snapshot
    func lostKeys(since snapshot: UbiquitySnapshot) -> [String] {
        snapshot.values.keys.filter { store.object(forKey: $0) == nil }.sorted()
    }
    // snippet.end

    func undo() async throws {
        // snippet.revert
        let versions = try await store.history(forKey: "draft")
        if let previous = versions.dropFirst().first {
            try store.revert("draft", to: previous)
        }
        // snippet.end
    }

    func restoreSnapshot() async throws {
        // snippet.revertAll-snapshot
        let snapshot = try await store.values(at: Date(timeIntervalSinceNow: -3_600))
        print("This restores \(snapshot.values.count) keys.")
        try store.revertAll(to: snapshot)
        // snippet.end
    }

    func restoreHour() async throws {
        // snippet.revertAll-date
        try await store.revertAll(to: Date(timeIntervalSinceNow: -3_600))
        // snippet.end
    }

    // MARK: - Configuration

    @Test func `a configuration`() throws {
        // snippet.configuration
        var configuration = UbiquityConfiguration(identifier: "TEAMID.com.example.notes")
        configuration.keyLimit = .utf16Units(128)
        #if DEBUG
        configuration.isStrict = true
        #endif
        // snippet.end
        // snippet.historyExcluded
        configuration.historyExcluded = ["token", "lastSearch"]
        // snippet.end
        // snippet.notificationQueue
        configuration.notificationQueue = DispatchQueue(label: "com.example.notes.store")
        // snippet.end
        let other = cloud.newDevice("tablet").openStore(configuration)
        other.set("secret", forKey: "token")
        cloud.settle()
        #expect(store.string(forKey: "token") == "secret")
    }
}
