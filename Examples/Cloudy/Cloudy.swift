// SPDX-License-Identifier: Apache-2.0

import ExampleStage

/// Bookmarks that several devices change at the same time.
@main
struct Cloudy {
    static func main() async { await Stage.run(CloudyPane.self) }
}
