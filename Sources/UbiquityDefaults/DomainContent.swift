// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Ubiquity
internal import UbiquityCore

/// A snapshot of some preferences.
struct DomainContent {
    private let values: [String: Any]
    /// By key.
    let keyBaselines: [String: KeyBaseline]
    let baseline: MirrorBaseline?

    init(values: [String: Any], bookkeeping: Bookkeeping) {
        var keyBaselines: [String: KeyBaseline] = [:]
        for (name, value) in values {
            guard let key = bookkeeping.key(of: name) else { continue }
            keyBaselines[key] = (try? PropertyListValue(value)).flatMap(KeyBaseline.init)
        }
        self.keyBaselines = keyBaselines
        self.values = values
        baseline = values[bookkeeping.baselineName].flatMap { try? PropertyListValue($0) }
            .flatMap(MirrorBaseline.init)
    }

    var names: some Collection<String> { values.keys }

    /// Nil if it is not set.
    /// - Throws: `UnsupportedValue`.
    func value(_ name: String) throws(UnsupportedValue) -> PropertyListValue? {
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
