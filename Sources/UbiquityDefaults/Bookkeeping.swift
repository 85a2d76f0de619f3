// SPDX-License-Identifier: Apache-2.0

internal import Ubiquity
internal import UbiquityCore

/// The keys under which a mirror stores baselines among the preferences themselves. There they
/// are lost, copied and restored together with the preferences, so they always refer to the values
/// beside them.
///
/// Each key has a bookkeeping key of its own, so that another process or a damaged file that
/// changes some of the preferences does the same to their baselines.
struct Bookkeeping: Sendable {
    private let prefix: String

    init(store: String) { prefix = "\(MirrorableNames.bookkeeping)\(store)" }

    /// The key for the baseline.
    var baselineName: String { prefix }

    func name(of key: String) -> String { "\(prefix):\(key)" }

    /// The key that a bookkeeping key is for; nil if it is not one of this store's.
    func key(of name: String) -> String? {
        guard name.hasPrefix(prefix) else { return nil }
        let rest = name.dropFirst(prefix.count)
        return rest.first == ":" ? String(rest.dropFirst()) : nil
    }
}

/// The last value that preferences and store had in common.
struct KeyBaseline {
    let mark: ValueFingerprint
    /// Nil if the key's policy does not need it.
    let value: PropertyListValue?
    /// The count of a key with the counter policy. Preferences and store cannot be written at once,
    /// but a count must be added once.
    let count: ExternalCount?

    init(_ value: PropertyListValue, keepsValue: Bool, count: ExternalCount? = nil) {
        mark = value.mark
        self.value = keepsValue ? value : nil
        self.count = count
    }

    /// 16 bytes, or an array of them, the value, and the count.
    var propertyList: PropertyListValue {
        let mark = PropertyListValue.data(mark.bytes)
        guard let value else { return mark }
        return .array([mark, value] + (count.map { [$0.propertyList] } ?? []))
    }

    init?(_ propertyList: PropertyListValue) {
        switch propertyList {
        case .data(let bytes):
            guard let mark = ValueFingerprint(bytes: bytes) else { return nil }
            (self.mark, value, count) = (mark, nil, nil)
        case .array(let parts):
            guard (2...3).contains(parts.count), case .data(let bytes) = parts[0],
                let mark = ValueFingerprint(bytes: bytes)
            else { return nil }
            (self.mark, value) = (mark, parts[1])
            count = parts.count == 3 ? ExternalCount(parts[2]) : nil
        default: return nil
        }
    }
}

extension MirrorBaseline {
    var propertyList: PropertyListValue {
        var fields: [ExactString: PropertyListValue] = ["synced": .boolean(isSynced)]
        fields["account"] = account.map { .string($0) }
        return .dictionary(fields)
    }

    init?(_ propertyList: PropertyListValue) {
        guard case .dictionary(let fields) = propertyList,
            case .boolean(let isSynced)? = fields["synced"]
        else { return nil }
        self.init(account: fields["account"]?.asString, isSynced: isSynced)
    }
}
