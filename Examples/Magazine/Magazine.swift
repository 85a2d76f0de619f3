// SPDX-License-Identifier: Apache-2.0

import ExampleStage

/// Issue and page of a magazine, in two programs that share one store.
@main
struct Magazine {
    static func main() async { await Stage.run(MagazinePane.self) }
}
