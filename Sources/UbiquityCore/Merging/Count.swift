// SPDX-License-Identifier: Apache-2.0

/// A run's count under a key: its total, and how many times it has counted.
///
/// Only the run itself writes it. Of two versions, the one with more times is the later, whatever
/// their stamps: a clone, or a device restored from a backup, may send an older one later.
struct Count: Sendable {
    var times: Int64
    var total: Number

    init(times: Int64, total: Number) {
        self.times = times
        self.total = total
    }

    /// Fails for a value that is not a count.
    init?(_ value: PropertyListValue?) {
        guard case .array(let parts)? = value, parts.count == 2,
            case .integer(let times) = parts[0],
            let total = Number(parts[1])
        else { return nil }
        self.init(times: times, total: total)
    }

    var value: PropertyListValue { .array([.integer(times), total.value]) }

    /// The record that removes all of this: added to the count, it gives zero.
    var removal: Count { Count(times: times, total: .zero - total) }
}
