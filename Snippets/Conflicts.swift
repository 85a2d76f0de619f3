// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

// snippet.timestamps
var configuration = UbiquityConfiguration(identifier: "TEAMID.com.example.game")
configuration.firstSync = .timestamps
let store = try UbiquitousKeyValueStore(configuration: configuration)
// snippet.end

// snippet.levels
func keepHighestLevel(in store: UbiquitousKeyValueStore) async {
    var record = store.longLong(forKey: "level")
    for await change in store.changes where change.keys.contains("level") {
        let level = store.longLong(forKey: "level")
        if level < record, change.origin != .accountChange {
            store.set(record, forKey: "level")
        } else {
            record = level
        }
    }
}
// snippet.end

// snippet.policies
func declarePolicies(for store: UbiquitousKeyValueStore) {
    store.setConflictPolicy(.maximum, forKey: "level")
    store.setConflictPolicy(.unionOfArrays, forKey: "badges")
    store.setConflictPolicy(.unionOfDictionaries, forKey: "note")
    store.setConflictPolicy(
        .custom { earlier, later in "\(earlier.value)\n\(later.value)" }, forKey: "draft")
}

func countStart(in store: UbiquitousKeyValueStore) { store.increment(forKey: "starts") }
// snippet.end

// snippet.keyPerItem
func add(_ note: String, to store: UbiquitousKeyValueStore) {
    store.set(note, forKey: "note.\(UUID())")
}

func notes(in store: UbiquitousKeyValueStore) -> [String] {
    store.dictionaryRepresentation
        .filter { $0.key.hasPrefix("note.") }
        .compactMap { $0.value as? String }
}
// snippet.end

// snippet.initialSync
func isNewPlayer(in store: UbiquitousKeyValueStore) async throws -> Bool {
    try await store.initialSync()
    return store.object(forKey: "level") == nil
}
// snippet.end

// snippet.hide
declarePolicies(for: store)
countStart(in: store)
add("milk", to: store)
print(notes(in: store))
let task = Task { await keepHighestLevel(in: store) }
task.cancel()
if store.status.isInitialSyncComplete { print(try await isNewPlayer(in: store)) }
