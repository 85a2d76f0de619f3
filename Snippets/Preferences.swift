// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityDefaults

// snippet.three
let mirror = try DefaultsMirror(keys: ["theme", .key("level", .maximum), .prefix("editor.")])

mirror.set("dark", forKey: "theme")
// snippet.end

// snippet.properties
extension UbiquityKeys {
    static let theme = UbiquityKey("theme", default: "light")
    static let level = UbiquityKey("level", default: 1, policy: .maximum)
}

let game = try DefaultsMirror(.suite("com.example.game"), keys: [.key(.theme), .key(.level)])

struct GameSettings {
    @Mirrored(.theme, in: game) var theme
    @Mirrored(.level, in: game) var level
}
// snippet.end

// snippet.suite
func openShared() throws -> DefaultsMirror {
    let store = try UbiquitousKeyValueStore(identifier: "TEAMID.com.example.editor")
    return try DefaultsMirror(.suite("com.example.editor"), store, keys: [.prefix("editor.")])
}
// snippet.end

// snippet.write
func settingsDidClose() {
    UserDefaults.standard.set(14, forKey: "editor.size")
    mirror.update()
}

func appWillEnd() async {
    await mirror.updateNow()
    mirror.store.synchronize()
}
// snippet.end

// snippet.follow
func followPreferences() async {
    for await keys in mirror.changes {
        print("changed elsewhere: \(keys)")
    }
}

let observer = NotificationCenter.default.addObserver(
    forName: DefaultsMirror.didChangeDefaultsNotification, object: mirror, queue: .main
) { notification in
    let keys = notification.userInfo?[DefaultsMirror.changedKeysKey] as? [String] ?? []
    print("redraw what shows \(keys)")
}
// snippet.end

// snippet.issues
func logIssues() async {
    for await issue in mirror.issues {
        print(issue)
    }
}
// snippet.end

// snippet.policies
func openGame() throws -> DefaultsMirror {
    try DefaultsMirror(
        .suite("com.example.game"),
        keys: [
            "player",
            .key("level", .maximum),
            .key("bestTime", .minimum),
            .key("games", .counter),
            .key("badges", .unionOfArrays),
            .prefix("progress.", .unionOfDictionaries),
            .key("notes", .custom(joined)),
        ])
}

@Sendable
func joined(_ earlier: ConflictingValue, _ later: ConflictingValue) -> Any {
    guard let a = earlier.value as? String, let b = later.value as? String else {
        return later.value
    }
    return a + "\n" + b
}
// snippet.end

// snippet.hide
GameSettings().level += 1
settingsDidClose()
await appWillEnd()
let tasks = [Task { await followPreferences() }, Task { await logIssues() }]
for task in tasks { task.cancel() }
if CommandLine.arguments.contains("game") { _ = (try openGame(), try openShared()) }
NotificationCenter.default.removeObserver(observer)
