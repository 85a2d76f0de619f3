// SPDX-License-Identifier: Apache-2.0

import ExampleScreen
import ExampleStage
import Foundation

/// Level 13 against level 1, played in either way: what becomes of the lower level that was finished
/// later.
@main
final class LevelUpPane: Pane {
    static let name = "LevelUp"
    static let identifier = "EXAMPLES.levelup"

    private let guide: GuideGame
    private let policy: PolicyGame
    private var usesPolicy = false

    init(_ device: StageDevice) throws {
        policy = try PolicyGame(device.store, device.preferences)
        guide = GuideGame(device.store, device.defaults)
    }

    private var level: Int { usesPolicy ? policy.level : guide.level }
    private var levelInStore: Int { usesPolicy ? policy.levelInStore : guide.levelInStore }

    var lines: [Line] {
        [
            Line("Level \(level)", .bold), bar, "",
            "In the store: \(levelInStore)", remark, "",
            Line(usesPolicy ? "The maximum policy" : "The guide's solution", Style(.cyan)), "",
            Line("Space  finish the next level", .dim), Line("1      finish level 1", .dim),
            Line("9      finish level 13", .dim), Line("g      the other solution", .dim),
        ]
    }

    private var bar: Line {
        let stars = max(0, min(level, 30))
        return Line(String(repeating: "★", count: stars), Style(.yellow))
            + Line(String(repeating: "·", count: max(0, 13 - stars)), .dim)
    }

    private var remark: Line {
        if usesPolicy { return Line("The higher level wins automatically.", .dim) }
        return switch guide.corrections {
        case 0: Line("No lower level has arrived yet.", .dim)
        case 1: Line("A lower level came and was corrected.", Style(.yellow))
        case let count: Line("A lower level was corrected \(count) times.", Style(.yellow))
        }
    }

    func press(_ key: Key) {
        switch key {
        case .character(" "): finish(level + 1)
        case .character("1"): finish(1)
        case .character("9"): finish(13)
        case .character("g"): usesPolicy.toggle()
        default: break
        }
    }

    private func finish(_ level: Int) {
        if usesPolicy { policy.finish(level: level) } else { guide.finish(level: level) }
    }
}
