// SPDX-License-Identifier: Apache-2.0

/// Decides which names of an app's preferences can be mirrored.
package enum MirrorableNames {
    /// The prefix of a mirror's own bookkeeping.
    package static let bookkeeping = "UbiquityMirror:"

    /// Prefixes that systems and frameworks use in an app's preferences, for settings of one
    /// machine.
    private static let foreignPrefixes = [
        "AK", "Apple", "NS", "com.apple.", "AddingEmojiKeybordHandled", "INNextFreshmintRefresh",
        "INNextHearbeatDate", "METAL_", "MSVLoggingMasterSwitchEnabledKey",
        "MultipleProcessesEnabled",
        "PKKeychainVersionKey", "PKLogNotificationServiceResponsesKey", "WebDatabaseDirectory",
        "WebKit",
    ]

    /// The reason a name is never mirrored, as a sentence; nil if it can be.
    package static func refusal(of name: String) -> String? {
        if name.isEmpty { return "a key must not be empty" }
        if name.hasPrefix(bookkeeping) { return "the key belongs to the mirror itself" }
        let isForeign = foreignPrefixes.contains(where: name.hasPrefix)
        return isForeign ? "the key belongs to the system, and its values to one machine" : nil
    }
}

extension PropertyListValue {
    /// The value as a preferences file on Linux returns it: dates without fractions of a second, no
    /// negative zero. Two values with the same form cannot be told apart there.
    package var preferencesForm: PropertyListValue {
        switch self {
        case .real(let real) where real == 0: .real(0)
        case .date(let date): .date(date.rounded(.down) + 0)
        case .array(let values): .array(values.map(\.preferencesForm))
        case .dictionary(let entries): .dictionary(entries.mapValues(\.preferencesForm))
        default: self
        }
    }

    /// Whether a preferences file can hold it. On Linux, a date that is not finite makes the whole
    /// file unreadable.
    package var fitsPreferences: Bool {
        switch self {
        case .date(let date): date.isFinite
        case .sealed: false
        case .array(let values): values.allSatisfy(\.fitsPreferences)
        case .dictionary(let entries): entries.values.allSatisfy(\.fitsPreferences)
        default: true
        }
    }

    /// Whether Foundation on Linux takes the two for one value, and so does not replace one by the
    /// other: equal numbers of any type, except Bools.
    package func looksEqual(to other: PropertyListValue) -> Bool {
        switch (self, other) {
        case (.integer, .real), (.integer, .unsigned), (.unsigned, .real), (.real, .integer),
            (.unsigned, .integer), (.real, .unsigned):
            asDouble == other.asDouble
        case (.array(let values), .array(let others)):
            values.count == others.count && zip(values, others).allSatisfy { $0.looksEqual(to: $1) }
        case (.dictionary(let values), .dictionary(let others)):
            values.count == others.count
                && values.allSatisfy { key, value in
                    others[key].map { value.looksEqual(to: $0) } ?? false
                }
        default: self == other
        }
    }
}
