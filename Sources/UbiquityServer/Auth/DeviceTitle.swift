// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// What a device is called, made fit to be shown: without control characters, and not too long.
enum DeviceTitle {
    /// Of a device that was never given a name.
    static let unnamed = "device"

    /// - Returns: Nil if nothing is left.
    static func fit(_ text: String) -> String? {
        let visible = text.unicodeScalars.filter { !$0.isControl }
        var title = String(String.UnicodeScalarView(visible))
            .trimmingCharacters(in: .whitespaces)
        while title.utf8.count > AccountName.bytesMax { title.removeLast() }
        return title.isEmpty ? nil : title
    }
}
