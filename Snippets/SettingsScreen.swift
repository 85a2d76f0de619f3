// SPDX-License-Identifier: Apache-2.0

import Observation
import Ubiquity

// snippet.settings
extension UbiquityKeys {
    static let fontSize = UbiquityKey("fontSize", default: 13.0)
    static let theme = UbiquityKey("theme", default: "light")
    static let streak = UbiquityKey("longestStreak", default: 0, policy: .maximum)
}

@MainActor @Observable
final class Settings {
    @ObservationIgnored @Ubiquitous(.fontSize) var fontSize
    @ObservationIgnored @Ubiquitous(.theme) var theme
    @ObservationIgnored @Ubiquitous(.streak) var longestStreak
}
// snippet.end

// snippet.without
@MainActor
func draw(_ settings: Settings) {
    withObservationTracking {
        print("\(settings.theme), \(settings.fontSize) points")
    } onChange: {
        // Called before the change; the new value is there in the next turn.
        Task { @MainActor in draw(settings) }
    }
}
// snippet.end

// snippet.hide
let settings = Settings()
draw(settings)
settings.fontSize += 1
settings.longestStreak = 3
