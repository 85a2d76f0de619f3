// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// Makes the name of a device fit for display: without control characters, and not too long.
enum DeviceTitle {
    /// The name of a device that was never given one.
    static let unnamed = "device"

    /// - Returns: The visible text, shortened if necessary; nil if nothing is left.
    static func fit(_ text: String) -> String? {
        let visible = text.unicodeScalars.filter { !$0.isControl }
        var title = String(String.UnicodeScalarView(visible))
            .trimmingCharacters(in: .whitespaces)
        while title.utf8.count > AccountName.bytesMax { title.removeLast() }
        return title.isEmpty ? nil : title
    }
}
