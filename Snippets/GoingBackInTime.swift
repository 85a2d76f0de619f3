// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

// snippet.history
func printHistory(of key: String, in store: UbiquitousKeyValueStore) async throws {
    for version in try await store.history(forKey: key) {
        let device = version.author.name ?? version.author.id
        switch version.outcome {
        case .current: print("\(device) made it \(version.value ?? "nothing")")
        case .replaced(let author, let date):
            print(
                "before \(date), when \(author.name ?? author.id) changed it: \(version.value ?? "nothing")"
            )
        case .lost: print("\(device)'s came too late: \(version.value ?? "nothing")")
        case .waiting: print("not sent yet: \(version.value ?? "nothing")")
        case .refused(let reason): print("not taken, because \(reason)")
        case .gap: print("from \(version.date) on, some values are not known any more")
        }
    }
}
// snippet.end

// snippet.undo
func undo(_ key: String, in store: UbiquitousKeyValueStore) async throws {
    let versions = try await store.history(forKey: key)
    let earlier = versions.first { version in
        if case .replaced = version.outcome { true } else { false }
    }
    if let earlier { try store.revert(key, to: earlier) }
}
// snippet.end

// snippet.rewind
func goBack(by hours: Double, in store: UbiquitousKeyValueStore) async throws {
    let then = try await store.values(at: Date(timeIntervalSinceNow: -hours * 3_600))
    print("It would have \(then.values.count) keys.")
    try store.revertAll(to: then)
}
// snippet.end

// snippet.offline
func lastKnown(_ key: String, in store: UbiquitousKeyValueStore) async throws -> [UbiquityVersion] {
    do { return try await store.history(forKey: key) } catch let error as UbiquityError
        where error.code == .unreachable
    {
        return try store.localHistory(forKey: key)
    }
}
// snippet.end

// snippet.excluded
func openedWithoutTokens() throws -> UbiquitousKeyValueStore {
    var configuration = UbiquityConfiguration(identifier: "TEAMID.com.example.app")
    configuration.historyExcluded = ["token", "lastSearch"]
    return try UbiquitousKeyValueStore(configuration: configuration)
}
// snippet.end

// snippet.hide
let store = try openedWithoutTokens()
try await printHistory(of: "theme", in: store)
try await undo("theme", in: store)
try await goBack(by: 1, in: store)
print(try await lastKnown("theme", in: store).count)
