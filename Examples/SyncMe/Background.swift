// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityDefaults

/// The background colour of an app, the same on all of a person's devices. The app goes on with its
/// preferences, and the mirror does the rest.
@MainActor
final class Background {
    private let mirror: DefaultsMirror

    init(_ store: UbiquitousKeyValueStore, _ preferences: DefaultsDomain) throws {
        mirror = try DefaultsMirror(preferences, store, keys: ["background"])
    }

    /// The chosen colour; blue if nothing was chosen, or the value is not a colour.
    var color: Choice {
        get { mirror.defaults.string(forKey: "background").flatMap(Choice.init) ?? .blue }
        set { mirror.set(newValue.rawValue, forKey: "background") }
    }

    enum Choice: String, CaseIterable {
        case blue, green, violet, orange, slate, rose
    }
}
