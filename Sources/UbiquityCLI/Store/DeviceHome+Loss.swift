// SPDX-License-Identifier: Apache-2.0

import Ubiquity
import UbiquityCore

extension DeviceHome {
    /// What would be lost with the account's values on this device, as a sentence without its full stop;
    /// nil if the server has everything.
    var loss: TerminalText? {
        get throws {
            let stores = try unsentStores()
            guard !stores.isEmpty else { return nil }
            let shown = stores.prefix(Self.storesShown).map { store in
                store.keys.map { "\(Phrase.keys($0)) of \(store.identifier)" }
                    ?? "\(store.identifier), which cannot be read"
            }
            let more = stores.count - shown.count
            let rest = more > 0 ? ", and \(Phrase.counted(more, "more store"))" : ""
            return "Not sent yet, and lost for good: \(shown.joined(separator: ", "))\(rest)"
        }
    }

    private static let storesShown = 5
}
