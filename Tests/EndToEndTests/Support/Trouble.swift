// SPDX-License-Identifier: Apache-2.0

/// Why a test cannot go on.
struct Trouble: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}
