// SPDX-License-Identifier: Apache-2.0

/// `FROM...TO`, both inclusive.
package struct SeedRange: CustomStringConvertible {
    package var from: UInt64
    package var to: UInt64

    package init(_ from: UInt64, _ to: UInt64) { (self.from, self.to) = (from, to) }

    /// Fails for anything else, and if the first number is greater.
    package init?(argument: String) {
        let parts = argument.split(separator: ".").compactMap { UInt64($0) }
        guard argument.contains("..."), parts.count == 2, parts[0] <= parts[1] else { return nil }
        self.init(parts[0], parts[1])
    }

    package var description: String { "\(from)...\(to)" }
}
