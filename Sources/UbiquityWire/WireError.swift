// SPDX-License-Identifier: Apache-2.0

/// The reason a message that could be parsed is not valid.
package struct WireError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A sentence, without a full stop, that names the field.
    package var description: String

    package init(_ description: String) { self.description = description }
}
