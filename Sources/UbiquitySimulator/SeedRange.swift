// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// `FROM...TO`, both inclusive.
struct SeedRange: ExpressibleByArgument {
    var from: UInt64
    var to: UInt64

    init(_ from: UInt64, _ to: UInt64) { (self.from, self.to) = (from, to) }

    init?(argument: String) {
        let parts = argument.split(separator: ".").compactMap { UInt64($0) }
        guard argument.contains("..."), parts.count == 2, parts[0] <= parts[1] else { return nil }
        self.init(parts[0], parts[1])
    }
}
