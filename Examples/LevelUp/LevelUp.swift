// SPDX-License-Identifier: Apache-2.0

import ExampleStage

/// Level 13 against level 1: what becomes of the lower level that was finished later.
@main
struct LevelUp {
    static func main() async { await Stage.run(LevelUpPane.self) }
}
