// SPDX-License-Identifier: Apache-2.0

import Foundation
import Observation
import Testing
import Ubiquity
import UbiquityTesting

// snippet.keys
extension UbiquityKeys {
    static let volume = UbiquityKey("volume", default: 0.8)
    static let level = UbiquityKey("level", default: 1, policy: .maximum)
    static let nickname = UbiquityKey<String?>("nickname")
}
// snippet.end

// snippet.key
struct Window: Codable {
    var width = 800.0
    var isFullScreen = false
}

extension UbiquityKeys {
    static let window = UbiquityKey("window", default: Window())
}
// snippet.end

extension UbiquityKeys {
    // snippet.custom
    static let draft = UbiquityKey(
        "draft", default: "",
        policy: .custom { earlier, later in "\(earlier.value)\n\(later.value)" })
    // snippet.end
    static let starts = UbiquityKey("starts", default: 0, policy: .counter)
    static let badges = UbiquityKey<[String]>("badges", default: [], policy: .unionOfArrays)
}

// snippet.property
struct Player {
    @Ubiquitous(.volume) var volume

    func mute() { volume = 0 }
}
// snippet.end

// snippet.property-in-class
@Observable final class Settings {
    @ObservationIgnored @Ubiquitous(.volume) var volume
}
// snippet.end

#if canImport(SwiftUI)
import SwiftUI

// snippet.view
struct VolumeView: View {
    @State private var settings = ObservableStore()

    var body: some View {
        Slider(value: $settings[.volume])
    }
}
// snippet.end
#endif

// snippet.conflicting
@Sendable func longer(_ earlier: ConflictingValue, _ later: ConflictingValue) -> Any {
    guard let a = earlier.value as? String, let b = later.value as? String else {
        return later.value
    }
    return a.count > b.count ? a : b
}
// snippet.end

/// The examples in the doc comments of typed keys, run on a device of a test's cloud.
struct TypedReference {
    let cloud = TestCloud()
    let store: UbiquitousKeyValueStore

    init() { store = cloud.newDevice("phone").openStore("TEAMID.com.example.player") }

    @Test func `a key is read and written by subscript`() {
        // snippet.subscript
        store[.volume] = 0.5
        store[.window].isFullScreen = true
        store[.nickname] = nil  // removes it
        // snippet.end
        #expect((store[.volume], store[.window].isFullScreen, store[.nickname]) == (0.5, true, nil))
    }

    @Test func `a value and the lack of one`() throws {
        // snippet.value-for
        let volume = try store.value(for: .volume)
        print(volume.map { "The volume is \($0)." } ?? "The volume was never set.")
        // snippet.end
        #expect(volume == nil)
        // snippet.set-for
        do {
            try store.set(Window(width: 1_024), for: .window)
        } catch {
            print("The window's size is not stored: \(error)")
        }
        // snippet.end
        // snippet.hasValue
        if !store.hasValue(for: .nickname) { print("Choose a nickname.") }
        // snippet.end
        // snippet.remove
        store.remove(.window)
        print(store[.window].width)  // 800.0, the default
        // snippet.end
        #expect(store[.window].width == 800)
    }

    @Test func `a change is written, not only its result`() throws {
        // snippet.update
        try store.update(.badges) { $0.append("first level") }
        try store.update(.starts) { $0 += 1 }
        // snippet.end
        #expect((store[.badges], store[.starts]) == (["first level"], 1))
    }

    @Test func `a policy for one store`() {
        // snippet.setConflictPolicy
        // This store keeps the least level, whatever the key declares.
        store.setConflictPolicy(.minimum, for: .level)
        // snippet.end
        store[.level] = 3
        store[.level] = 5
        #expect(store[.level] == 3)
    }

    @Test func `policies declared with keys`() {
        let other = cloud.newDevice("laptop").openStore("TEAMID.com.example.player")
        cloud.settle()
        // snippet.policy
        let best = UbiquityKey("best", default: 0, policy: .maximum)
        store[best] = 1_200
        other[best] = 900  // on another device, at the same time
        cloud.settle()
        print(store[best], other[best])  // 1200 on both
        // snippet.end
        #expect((store[best], other[best]) == (1_200, 1_200))
    }

    @Test func `a rule of the app's own`() {
        store.setConflictPolicy(.custom(longer), forKey: "summary")
        store.set("A long summary", forKey: "summary")
        #expect(store.string(forKey: "summary") == "A long summary")
    }

    func followVolume() async {
        // snippet.values
        for await volume in store.values(for: .volume) {
            print("The volume is \(volume).")  // at once, then after each change
        }
        // snippet.end
    }

    // snippet.property-values
    func follow(_ player: Player) async {
        for await volume in player.$volume.values {
            print("The volume is \(volume).")
        }
    }
    // snippet.end

    @MainActor
    @Test func `a view redraws what it read`() {
        let settings = ObservableStore(store)
        // snippet.observable
        withObservationTracking {
            print("Volume \(settings[.volume]), \(settings.status.connection)")
        } onChange: {
            print("Draw it again.")
        }
        // snippet.end
        settings[.volume] = 0.3
        #expect(store[.volume] == 0.3)
    }
}

extension Player {
    // snippet.wrapper
    func reset() {
        if $volume.hasValue { $volume.remove() }
    }
    // snippet.end
}
