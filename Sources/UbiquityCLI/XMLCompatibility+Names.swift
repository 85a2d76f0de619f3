// SPDX-License-Identifier: Apache-2.0

import UbiquityArchive
import UbiquityCore

extension XMLCompatibility {
    private static let keysShown = 5

    /// Lists some of the keys.
    static func names(_ keys: [Key]) -> String {
        let shown = keys.prefix(keysShown).map { JSON.string($0.string).text }
        let more = keys.count > shown.count ? " and \(keys.count - shown.count) more" : ""
        return shown.joined(separator: ", ") + more
    }
}
