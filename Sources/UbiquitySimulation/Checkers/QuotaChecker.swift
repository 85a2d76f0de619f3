// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// No commit takes a store over its limits, or makes it larger if they were lowered. And a push
/// within the limits is not refused.
package final class QuotaChecker: Checker {
    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        guard case .committed(let commit) = observation, !commit.isWhole else { return nil }
        let (before, after) = (Self.usage(commit.before), Self.usage(commit.after))
        // A record that something is removed always fits, and so does a counter's fold.
        let (old, new) = (Self.usageOfRest(commit.before), Self.usageOfRest(commit.after))
        if !commit.isSealed, new.bytes > max(old.bytes, commit.limits.storeBytesMax),
            after.bytes > before.bytes
        {
            return "\(commit.store) grew to \(after.bytes) bytes; "
                + "\(commit.limits.storeBytesMax) are allowed"
        }
        if new.keys > max(old.keys, commit.limits.keysMax), after.keys > before.keys {
            return "\(commit.store) grew to \(after.keys) keys; "
                + "\(commit.limits.keysMax) are allowed"
        }
        return refusedWithoutReason(in: commit)
    }

    /// Transactions after the first one of a push are judged with its effect.
    private func refusedWithoutReason(in commit: Commit) -> String? {
        guard case .refused(let refusal)? = commit.results.first,
            ["quota-bytes", "quota-keys"].contains(refusal.code),
            let writes = commit.push.transactions.first?.writes
        else { return nil }
        var records = commit.before
        for write in writes {
            let old = records[write.key]?.stamp
            // Of two with one stamp, either may win; of some parts, the one that has come further.
            if write.stamp == old || old != nil && write.key.isPart { return nil }
            if old.map({ $0 < write.stamp }) ?? true { records[write.key] = write }
        }
        let (before, after) = (Self.usage(commit.before), Self.usage(records))
        // What makes the values smaller may make their boxes larger.
        let grows = commit.isSealed || after.bytes > before.bytes
        let isTooMuch =
            after.bytes > commit.limits.storeBytesMax && grows
            || after.keys > commit.limits.keysMax && after.keys > before.keys
        return isTooMuch
            ? nil
            : "\(commit.store) refused \(writes.map(\.key)) for its quota, and they fit: "
                + "\(after.bytes) bytes after \(before.bytes); \(refusal.detail)"
    }

    private static func usageOfRest(_ records: [Key: Record]) -> (bytes: Int, keys: Int) {
        usage(records.filter { !$0.value.alwaysFits })
    }

    private static func usage(_ records: [Key: Record]) -> (bytes: Int, keys: Int) {
        let present = records.filter { $0.value.content.value != nil }
        let bytes = present.reduce(0) { sum, record in
            let part = record.key.part.map { $0.text.string.utf8.count + 16 } ?? 0
            return sum + part + size(record.value.content.value!)
        }
        return (bytes, present.keys.count { !$0.isPart })
    }

    /// Counts as in the contract, independently of the code.
    private static func size(_ value: PropertyListValue) -> Int {
        switch value {
        case .string(let text): text.string.utf8.count
        case .data(let bytes): bytes.count
        case .sealed(let box): max(0, box.bytes.count - 64) * 8 / 9
        case .boolean: 1
        case .integer, .unsigned, .real, .date: 8
        case .array(let parts): parts.reduce(0) { $0 + 8 + size($1) }
        case .dictionary(let parts):
            parts.reduce(0) { $0 + 8 + $1.key.string.utf8.count + size($1.value) }
        }
    }
}

extension Record {
    /// Whether it says how far a part is removed, keeps a container that has become empty, or is
    /// made of counts by the server. A count of a folded run was already there for its author.
    fileprivate var alwaysFits: Bool {
        guard let part = key.part?.text.string else {
            return content.value == .array([]) || content.value == .dictionary([:])
        }
        if part.hasPrefix("c-") || key.isOfFold { return true }
        guard case .array? = content.value else { return false }
        return part.hasPrefix("x") || part.hasPrefix("n")
    }
}
