// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The reason a message that could be parsed is not valid.
package struct WireError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A sentence, without a full stop, that names the field.
    package var description: String

    package init(_ description: String) { self.description = description }
}

extension MessageBounds {
    /// - Throws: ``WireError`` if there are, or will be, more bytes.
    package func check(bytes: Int) throws(WireError) {
        guard bytes > self.bytes else { return }
        throw WireError("it has more than \(self.bytes >> 10) kB")
    }
}
