// SPDX-License-Identifier: Apache-2.0

import Ubiquity
import UbiquityCore

/// The entries of a property list that a store can and cannot take.
struct ImportPlan {
    struct Rejected: Equatable {
        var key: String
        /// The place in the value, such as `[3].url`; empty for the value itself or the key.
        var path = ""
        var reason: String
    }

    private(set) var accepted: [Key: PropertyListValue] = [:]
    private(set) var rejected: [Rejected] = []

    init(_ entries: [PropertyListFile.Entry], limits: StoreLimits) {
        for entry in entries {
            do {
                let (key, value) = try Self.check(entry, limits)
                accepted[key] = value
            } catch let error as UnsupportedValue {
                rejected.append(
                    Rejected(key: entry.key, path: error.path, reason: error.sentence))
            } catch {
                rejected.append(Rejected(key: entry.key, reason: "\(error)"))
            }
        }
    }

    private static func check(
        _ entry: PropertyListFile.Entry, _ limits: StoreLimits
    ) throws -> (Key, PropertyListValue) {
        let (key, value) = (try Key(entry.key), try entry.value.get())
        try limits.check(key, .value(value))
        return (key, value)
    }

    /// The accepted entries that would change a value, sorted by key.
    func comparison(with values: [Key: PropertyListValue]) -> [ValueChange] {
        ValueChange.all(from: values.filter { accepted[$0.key] != nil }, to: accepted)
    }
}

extension ImportPlan.Rejected {
    /// A line for people. The key is quoted, because it may be empty and may contain anything.
    var line: String { "  \(JSON.string(key).text)\(path): \(reason)" }

    var json: JSON {
        ["key": .string(key), "path": .string(path), "reason": .string(reason)]
    }
}

extension LimitViolation {
    /// For a person who imports many values at once: the amount by which the limit is exceeded.
    var excess: String {
        switch self {
        case .storeBytes(let bytes, let max):
            "\(description): \(Phrase.bytes(bytes - max)) too many"
        case .keys(let count, let max): "\(description): \(Phrase.keys(count - max)) too many"
        case .keyTooLong, .valueTooLarge, .parts, .pushBytes: description
        }
    }
}
