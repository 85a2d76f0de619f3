// SPDX-License-Identifier: Apache-2.0

import Foundation
import Observation
import Ubiquity

let store = try UbiquitousKeyValueStore(identifier: "TEAMID.com.example.player")

// snippet.keys
struct Game: Codable {
    var level = 1
    var player: String?
}

extension UbiquityKeys {
    static let volume = UbiquityKey("volume", default: 0.8)
    static let nickname = UbiquityKey<String?>("nickname")
    static let level = UbiquityKey("level", default: 1, policy: .maximum)
    static let game = UbiquityKey("game", default: Game())
}

store[.volume] = 0.5
store[.game].level += 1
store[.nickname] = nil
// snippet.end

// snippet.wrapper
struct Player {
    @Ubiquitous(.volume) var volume
    @Ubiquitous(.nickname) var nickname
}

func mute(_ player: Player) {
    player.volume = 0
    player.$nickname.remove()
}
// snippet.end

// snippet.changes
func logChanges() async {
    for await change in store.changes {
        print("\(change.origin): \(change.keys)")
    }
}
// snippet.end

// snippet.values
func followVolume() async {
    for await volume in store.values(for: .volume) {
        print("the volume is \(volume)")
    }
}
// snippet.end

// snippet.statuses
func showStatus() async {
    for await status in store.statuses {
        print("\(status.connection), \(status.pendingKeys.count) keys wait")
    }
}
// snippet.end

// snippet.deliveries
func showDeliveries() async throws {
    for try await delivery in store.deliveries {
        print(delivery)  // on 2 of 3 devices; laptop was last seen on 2026-11-17
        for device in delivery.devices where !device.isCurrent {
            print("\(device.name) lacks \(device.changesBehind) changes")
        }
    }
}
// snippet.end

// snippet.observation
@MainActor
func draw(_ settings: ObservableStore) {
    withObservationTracking {
        print("volume: \(settings[.volume]), \(settings.status.connection)")
    } onChange: {
        Task { @MainActor in draw(settings) }
    }
}
// snippet.end

// snippet.batch
func swapColors() throws {
    try store.performBatch { batch in
        let front = batch.object(forKey: "front")
        try batch.set(batch.object(forKey: "back"), forKey: "front")
        try batch.set(front, forKey: "back")
    }
}
// snippet.end

// snippet.hide
try swapColors()
draw(ObservableStore(store))
let tasks = [
    Task { await logChanges() }, Task { await followVolume() }, Task { await showStatus() },
]
for task in tasks { task.cancel() }
if CommandLine.arguments.contains("mute") { mute(Player()) }
