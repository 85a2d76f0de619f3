// SPDX-License-Identifier: Apache-2.0

import ExampleStage

/// A note whose title and text never come apart, and what a device sees of it while it is offline.
@main
struct RoundTrip {
    static func main() async { await Stage.run(RoundTripPane.self) }
}
