// SPDX-License-Identifier: Apache-2.0

internal import Ubiquity
internal import UbiquityCore

/// The names under which a mirror keeps, among the preferences themselves, what was agreed on: there it
/// is lost, copied and restored together with them, so that it never speaks of other values than
/// those beside it.
///
/// A key for each key, and not one for all: what another process, or a damaged file, does to some
/// of the preferences it does to their agreements too.
struct Bookkeeping: Sendable {
    private let prefix: String

    init(store: String) { prefix = "\(MirroredName.bookkeeping)\(store)" }

    /// With what the agreements were made.
    var pactName: String { prefix }

    func name(of key: String) -> String { "\(prefix):\(key)" }

    /// The key whose agreement it is; nil: it is none of this store's.
    func key(of name: String) -> String? {
        guard name.hasPrefix(prefix) else { return nil }
        let rest = name.dropFirst(prefix.count)
        return rest.first == ":" ? String(rest.dropFirst()) : nil
    }
}

/// What preferences and store last had both.
struct Agreement {
    let mark: ValueFingerprint
    /// Nil: the key's policy does not need it.
    let value: PropertyListValue?
    /// What was counted, of a key with the policy of a counter: the preferences and the store cannot be
    /// written at once, and what is counted must be counted once.
    let count: KeptCount?

    init(_ value: PropertyListValue, keepsValue: Bool, count: KeptCount? = nil) {
        mark = value.mark
        self.value = keepsValue ? value : nil
        self.count = count
    }

    /// 16 bytes, or an array of them, the value, and what was counted.
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
            count = parts.count == 3 ? KeptCount(parts[2]) : nil
        default: return nil
        }
    }
}

extension MirrorPact {
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
