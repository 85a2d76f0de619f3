// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// Makes the name of a device fit for display: without control characters, and not too long.
enum DeviceDisplayName {
    /// The name of a device that was never given one.
    static let unnamed = "device"

    /// - Returns: The visible text, shortened if necessary; nil if nothing is left.
    static func fit(_ text: String) -> String? {
        let visible = text.unicodeScalars.filter { !$0.isControl }
        var displayName = String(String.UnicodeScalarView(visible))
            .trimmingCharacters(in: .whitespaces)
        while displayName.utf8.count > AccountName.bytesMax { displayName.removeLast() }
        return displayName.isEmpty ? nil : displayName
    }
}
