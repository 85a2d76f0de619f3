// SPDX-License-Identifier: Apache-2.0

/// An account's own limits, which replace the server's.
package struct AccountLimits: Hashable, Sendable {
    /// A limit. The raw values are those of the command line and the database.
    package enum Name: String, Hashable, Sendable, CaseIterable {
        case storeBytes = "store-bytes"
        case keys
        case historyDays = "history-days"
        case historyVersions = "history-versions"
        case historyBytes = "history-bytes"

        /// The valid values. No device accepts higher limits of a store, and 0 days mean no history.
        package var range: ClosedRange<Int> {
            switch self {
            case .storeBytes: 1...StoreLimits.ceiling.storeBytesMax
            case .keys: 1...StoreLimits.ceiling.keysMax
            case .historyDays: 0...36_500
            case .historyVersions: 1...10_000
            case .historyBytes: 1...1 << 32
            }
        }
    }

    /// A limit that is missing is the server's.
    package private(set) var values: [Name: Int] = [:]

    package init() {}

    /// - Throws: ``OutOfRange``.
    package mutating func set(_ name: Name, to value: Int?) throws(OutOfRange) {
        if let value, !name.range.contains(value) { throw OutOfRange(name: name) }
        values[name] = value
    }

    package struct OutOfRange: Error, Hashable, Sendable, CustomStringConvertible {
        package var name: Name

        package var description: String {
            "\(name.rawValue) must be from \(name.range.lowerBound) to \(name.range.upperBound)"
        }
    }

    /// The server's limits of a store, as they are for this account.
    package func applied(to limits: StoreLimits) -> StoreLimits {
        var limits = limits
        if let bytes = values[.storeBytes] { limits.storeBytesMax = bytes }
        if let keys = values[.keys] { limits.keysMax = keys }
        return limits
    }

    /// The server's limits of a history, as they are for this account. Unless it has its own limit of
    /// the history's bytes, that is at least four times its own limit of a store's.
    package func applied(to limits: HistoryLimits) -> HistoryLimits {
        var limits = limits
        if let days = values[.historyDays] { limits.milliseconds = Int64(days) * 86_400_000 }
        if let versions = values[.historyVersions] { limits.versionsMax = versions }
        limits.bytesMax =
            values[.historyBytes]
            ?? max(limits.bytesMax, HistoryLimits.bytesMax(ofStore: values[.storeBytes] ?? 0))
        return limits
    }

    // MARK: - Stored

    /// `keys=4096 store-bytes=5242880`; nil if there are none.
    package var text: String? {
        values.isEmpty
            ? nil : values.map { "\($0.rawValue)=\($1)" }.sorted().joined(separator: " ")
    }

    /// Fails for a text that is not of this form.
    package init?(_ text: String) {
        for field in text.split(separator: " ") {
            let parts = field.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, let name = Name(rawValue: String(parts[0])),
                values[name] == nil, let value = Int(parts[1]), (try? set(name, to: value)) != nil
            else { return nil }
        }
    }
}
