// SPDX-License-Identifier: Apache-2.0

import ExampleScreen
import ExampleStage

/// A background colour for all devices, by three lines of code.
@main
final class SyncMePane: Pane {
    static let name = "SyncMe"
    static let identifier = "EXAMPLES.syncme"

    private let background: Background

    init(_ device: StageDevice) throws {
        background = try Background(device.store, device.preferences)
    }

    var ground: Style { Style(.rgb(255, 255, 255), on: background.color.onScreen) }

    var lines: [Line] {
        let choices = Background.Choice.allCases.enumerated().map { index, choice in
            let isChosen = choice == background.color
            return Line("\(index + 1)  \(choice.rawValue)", isChosen ? .bold : .plain)
                + (isChosen ? "  ◀" : "")
        }
        return [Line("The background is \(background.color.rawValue).", .bold), ""] + choices + [
            "", "Space  the next colour",
        ]
    }

    func press(_ key: Key) {
        let choices = Background.Choice.allCases
        guard case .character(let character) = key else { return }
        if character == " " {
            let index = choices.firstIndex(of: background.color) ?? 0
            background.color = choices[(index + 1) % choices.count]
        } else if let number = character.wholeNumberValue, choices.indices.contains(number - 1) {
            background.color = choices[number - 1]
        }
    }
}

extension Background.Choice {
    fileprivate var onScreen: Color {
        switch self {
        case .blue: .rgb(24, 62, 132)
        case .green: .rgb(20, 96, 56)
        case .violet: .rgb(88, 40, 128)
        case .orange: .rgb(168, 80, 8)
        case .slate: .rgb(56, 64, 76)
        case .rose: .rgb(152, 32, 80)
        }
    }
}
