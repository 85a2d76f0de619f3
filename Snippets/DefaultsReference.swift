// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityDefaults

extension UbiquityKeys {
    static let theme = UbiquityKey("theme", default: "light")
    static let level = UbiquityKey("level", default: 1, policy: .maximum)
}

// snippet.mirror
let mirror = try DefaultsMirror(keys: ["theme", .key("level", .maximum), .prefix("editor.")])
UserDefaults.standard.set("dark", forKey: "theme")
mirror.update()  // follows the preferences to the person's other devices
// snippet.end

func openShared() throws -> DefaultsMirror {
    // snippet.init
    let store = try UbiquitousKeyValueStore(identifier: "TEAMID.com.example.editor")
    let mirror = try DefaultsMirror(
        .suite("com.example.editor"), store, keys: [.prefix("editor.")], interval: .seconds(1))
    // snippet.end
    return mirror
}

func writeBoth() {
    // snippet.set
    mirror.set("dark", forKey: "theme")  // instead of UserDefaults.standard.set
    // snippet.end
    // snippet.remove
    mirror.removeObject(forKey: "theme")  // the registered default applies again
    // snippet.end
}

// snippet.update
func settingsDidClose() {
    UserDefaults.standard.set(14, forKey: "editor.size")
    mirror.update()
}
// snippet.end

// snippet.update-now
func appWillEnd() async {
    await mirror.updateNow()
    mirror.store.synchronize()
}
// snippet.end

// snippet.stop
func userTurnedSyncOff() {
    mirror.stop()  // the preferences and the store keep their values
}
// snippet.end

func followPreferences() async {
    // snippet.changes
    for await keys in mirror.changes where keys.contains("theme") {
        print("The theme is \(mirror[.theme]) now.")
    }
    // snippet.end
}

func followIssues() async {
    // snippet.issues
    for await issue in mirror.issues {
        print("\(issue.key) is not synced: \(issue)")
    }
    // snippet.end
}

// snippet.issue
func isForThePerson(_ issue: MirrorIssue) -> Bool {
    switch issue.kind {
    case .refused, .discarded: true
    case .value, .taken: false  // a mistake in the app
    }
}
// snippet.end

func observe() -> any NSObjectProtocol {
    // snippet.notification
    let observer = NotificationCenter.default.addObserver(
        forName: DefaultsMirror.didChangeDefaultsNotification, object: mirror, queue: .main
    ) { notification in
        let keys = notification.userInfo?[DefaultsMirror.changedKeysKey] as? [String] ?? []
        print("Redraw what shows \(keys).")
    }
    // snippet.end
    return observer
}

// snippet.property
let game = try DefaultsMirror(keys: [.key(.theme), .key(.level)])

struct GameSettings {
    @Mirrored(.theme, in: game) var theme
    @Mirrored(.level, in: game) var level
}
// snippet.end

func readTyped() {
    // snippet.subscript
    mirror[.theme] = "dark"
    print(mirror[.level])  // 1, the key's default
    // snippet.end
}

// snippet.keys
let mirrored: [MirroredKeys] = [
    "theme",
    .key("bestTime", .minimum),
    .prefix("editor."),
    .matching { $0.hasSuffix(".color") },
]
// snippet.end

func openSuite() throws -> DefaultsMirror {
    // snippet.suite
    let widget = try DefaultsMirror(.suite("com.example.widget"), keys: ["city"])
    // snippet.end
    return widget
}
