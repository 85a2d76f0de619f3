// SPDX-License-Identifier: Apache-2.0

import ExampleStage

/// A background colour for all devices, by three lines of code.
@main
struct SyncMe {
    static func main() async { await Stage.run(SyncMePane.self) }
}
