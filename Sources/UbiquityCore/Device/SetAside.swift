// SPDX-License-Identifier: Apache-2.0

/// The server's records that this device has not taken, by their keys, each until the device takes one of
/// that key. A person decides: writing the key again replaces what the server has.
package struct SetAside: Hashable, Sendable {
    package enum Reason: Hashable, Sendable, CaseIterable {
        /// The account's key does not open the value at its place.
        case unopened
        /// A deletion, whose time a server can make up, is in the future.
        case ahead
        /// The device has agreed on a later record.
        case older

        /// On the disk. Not a raw value, which would be compared as a string.
        fileprivate var word: ExactString {
            switch self {
            case .unopened: "unopened"
            case .ahead: "ahead"
            case .older: "older"
            }
        }
    }

    private(set) var reasons: [Key: Reason] = [:]

    /// The maximum number of records. Others are not taken either, and neither counted nor named.
    package static let countMax = 1_000

    package init() {}

    package var isEmpty: Bool { reasons.isEmpty }

    /// The keys as an app knows them.
    package var keys: Set<Key> { Set(reasons.keys.lazy.map { $0.whole }) }

    /// Whether it is one of ``keys``.
    func has(_ key: Key) -> Bool { reasons.keys.contains { $0.whole == key } }

    /// - Parameter reason: Nil for a record that was taken.
    mutating func note(_ reason: Reason?, _ key: Key) {
        guard reason == nil || reasons[key] != nil || reasons.count < Self.countMax else { return }
        reasons[key] = reason
    }
}

extension SetAside {
    /// A sentence without a full stop.
    package var sentence: String {
        var keys: [Reason: Set<Key>] = [:]
        for (key, reason) in reasons { keys[reason, default: []].insert(key.whole) }
        let clauses = Reason.allCases.compactMap { reason in
            keys[reason].map { Self.clause(reason, $0.inOrder()) }
        }
        return clauses.joined(separator: "; ")
    }

    private static func clause(_ reason: Reason, _ keys: [Key]) -> String {
        let names = names(keys)
        return switch reason {
        case .unopened:
            "what the server has of \(names) does not open with the account's key"
        case .ahead: "the server dates a deletion of \(names) in the future"
        case .older: "the server shows \(names) as it was before this device's last value"
        }
    }

    private static let namesMax = 3

    private static func names(_ keys: [Key]) -> String {
        let names = keys.prefix(namesMax).map { "\"\($0.string)\"" }
        let rest = keys.count - names.count
        if rest > 0 { return names.joined(separator: ", ") + " and \(rest) more" }
        guard let last = names.last, names.count > 1 else { return names.first ?? "" }
        return names.dropLast().joined(separator: ", ") + " and " + last
    }
}

extension SetAside {
    /// Nil if it is empty: the keys of each reason.
    var fields: PropertyListValue? {
        if isEmpty { return nil }
        var keys: [ExactString: [Key]] = [:]
        for (key, reason) in reasons { keys[reason.word, default: []].append(key) }
        return .dictionary(keys.mapValues { .array($0.inOrder().map { .data($0.bytes) }) })
    }

    init(_ fields: StoredFields) throws(StoredFieldError) {
        for reason in Reason.allCases {
            for value in try fields.array(reason.word) ?? [] {
                guard case .data(let bytes) = value,
                    let key = bytes.withUnsafeBytes({ try? Key(bytes: $0) })
                else { throw .otherType(reason.word.string) }
                note(reason, key)
            }
        }
    }
}
