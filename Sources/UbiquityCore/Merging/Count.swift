// SPDX-License-Identifier: Apache-2.0

/// What one run of an app has counted under a key: the total, and how often it has counted.
///
/// Nobody else writes it, so of two the one that was counted more often is the later, whatever their
/// stamps: a clone, or a device that was restored from an older copy, may send an older one later.
struct Count: Sendable {
    var times: Int64
    var total: Number

    init(times: Int64, total: Number) {
        self.times = times
        self.total = total
    }

    /// Nil for a value that no run of this kind wrote.
    init?(_ value: PropertyListValue?) {
        guard case .array(let parts)? = value, parts.count == 2,
            case .integer(let times) = parts[0],
            let total = Number(parts[1])
        else { return nil }
        self.init(times: times, total: total)
    }

    var value: PropertyListValue { .array([.integer(times), total.value]) }

    /// Says that all of this is removed: added to it, it gives nothing.
    var removal: Count { Count(times: times, total: .zero - total) }
}
