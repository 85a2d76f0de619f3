// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

// snippet.helper
let store = try UbiquitousKeyValueStore(identifier: "TEAMID.com.example.notes")
store.set(Date(), forKey: "lastBackup")
guard store.synchronize() else { fatalError("the disk failed") }
// snippet.end

// snippet.short
do {
    try await store.synchronizeNow()
} catch {
    print("kept on this device; sent when a process connects: \(error)")
}
// snippet.end

// snippet.app
func showBackups() async {
    for await change in store.changes where change.keys.contains("lastBackup") {
        let date = store.object(forKey: "lastBackup") as? Date
        print("last backup: \(date?.description ?? "never"), told by \(change.origin)")
    }
}
// snippet.end

// snippet.leader
print(store.status.holdsConnection ? "this process is connected" : "another one may be")
// snippet.end

// snippet.hide
let task = Task { await showBackups() }
task.cancel()
