// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// What is wrong with a message that could be parsed but means nothing.
package struct WireError: Error, Hashable, Sendable, CustomStringConvertible {
    /// One sentence, without a final point, that names the field.
    package var description: String

    package init(_ description: String) { self.description = description }
}

extension MessageBounds {
    /// - Throws: ``WireError`` where there are more bytes, or are to come.
    package func check(bytes: Int) throws(WireError) {
        guard bytes > self.bytes else { return }
        throw WireError("it has more than \(self.bytes >> 10) kB")
    }
}
