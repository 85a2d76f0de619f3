// SPDX-License-Identifier: Apache-2.0

/// What is wrong with a message that could be parsed but means nothing.
package struct WireError: Error, Hashable, Sendable, CustomStringConvertible {
    /// One sentence, without a final point, that names the field.
    package var description: String

    package init(_ description: String) { self.description = description }
}
