// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Ubiquity
internal import UbiquityCore

/// A snapshot of some preferences.
struct DomainContent {
    private let values: [String: Any]
    /// By key.
    let agreements: [String: Agreement]
    let pact: MirrorPact?

    init(values: [String: Any], bookkeeping: Bookkeeping) {
        var agreements: [String: Agreement] = [:]
        for (name, value) in values {
            guard let key = bookkeeping.key(of: name) else { continue }
            agreements[key] = (try? PropertyListValue(value)).flatMap(Agreement.init)
        }
        self.agreements = agreements
        self.values = values
        pact = values[bookkeeping.pactName].flatMap { try? PropertyListValue($0) }
            .flatMap(MirrorPact.init)
    }

    var names: some Collection<String> { values.keys }

    /// Nil if it is not set.
    /// - Throws: `NotPropertyList`.
    func value(_ name: String) throws(NotPropertyList) -> PropertyListValue? {
        guard let value = values[name] else { return nil }
        return try PropertyListValue(value)
    }
}

extension PropertyListValue {
    /// The fingerprint for comparisons. Values that the preferences cannot tell apart have the same
    /// one.
    var mark: ValueFingerprint {
        #if canImport(Darwin)
        ValueFingerprint(self)
        #else
        ValueFingerprint(preferencesForm)
        #endif
    }
}
