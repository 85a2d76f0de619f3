// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// The name of an account, unique on a server: 1 to 128 bytes without control characters, and
/// without leading or trailing blanks.
package struct AccountName: Hashable, Sendable, CustomStringConvertible {
    package let string: String
    package static let bytesMax = 128
    static let rule =
        "an account's name has 1 to \(bytesMax) bytes, no control characters, and no blanks at its "
        + "ends"

    /// Fails for any other text.
    package init?(_ text: String) {
        guard (1...Self.bytesMax).contains(text.utf8.count),
            !text.hasControls,
            text.trimmingCharacters(in: .whitespaces) == text
        else { return nil }
        string = text
    }

    package var description: String { string }
}
