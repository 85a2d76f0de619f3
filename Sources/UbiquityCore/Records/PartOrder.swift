// SPDX-License-Identifier: Apache-2.0

/// The progress of a part that its run changes in place. Of two versions the one that has come
/// further wins, whatever their stamps. A clone, or a device restored from a backup, may send an
/// older one later, and a removal replaces what its author saw but not later progress of the run.
struct PartOrder {
    private enum Place {
        case counted(times: Int64)
        case reached(ComparableValue, MergePolicy, isRemoved: Bool)
    }

    private let place: Place

    /// Fails where the stamps decide: for all other records, and for a value that no run wrote.
    init?(_ key: Key, _ content: Content) {
        guard let value = content.value else { return nil }
        switch key.part?.policy {
        case .counter:
            guard let count = Count(value) else { return nil }
            place = .counted(times: count.times)
        case let policy? where policy.isExtremum:
            if let comparable = ComparableValue(value) {
                place = .reached(comparable, policy, isRemoved: false)
            } else if let comparable = ComparableValue(removed: value) {
                place = .reached(comparable, policy, isRemoved: true)
            } else {
                return nil
            }
        default: return nil
        }
    }

    /// Nil if both have come equally far.
    static func isBehind(_ a: Record, _ b: Record) -> Bool? {
        guard let one = PartOrder(a.key, a.content), let other = PartOrder(b.key, b.content) else {
            return nil
        }
        switch (one.place, other.place) {
        case (.counted(let a), .counted(let b)): return a == b ? nil : a < b
        case (.reached(let mine, let policy, let isRemoved), .reached(let theirs, _, let areTheirs)):
            if policy.prefers(theirs, to: mine) { return true }
            if policy.prefers(mine, to: theirs) { return false }
            return isRemoved == areTheirs ? nil : areTheirs
        default: return nil
        }
    }
}

extension Key {
    /// Whether a write only takes away: deletes, or says how far a part is removed.
    package func isTakenAway(by content: Content) -> Bool {
        guard let value = content.value else { return true }
        guard let part else { return value == .array([]) || value == .dictionary([:]) }
        return part.isRemoval
            || part.policy?.isExtremum == true && ComparableValue(removed: value) != nil
    }
}

/// A run's count under a key: its total, and how many times it has counted.
///
/// Only the run itself writes it. Of two versions, the one with more times is the later, whatever
/// their stamps: a clone, or a device restored from a backup, may send an older one later.
struct Count: Sendable {
    var times: Int64
    var total: Number
    /// Nil unless it is from a sealed store.
    var seal: SealedCount.Seal?

    init(times: Int64, total: Number, seal: SealedCount.Seal? = nil) {
        self.times = times
        self.total = total
        self.seal = seal
    }

    /// Fails for a value that is not a count.
    init?(_ value: PropertyListValue?) {
        if case .sealed(let box)? = value {
            guard let sealed = SealedCount(bytes: box.bytes), let count = Count(sealed.value) else {
                return nil
            }
            self = count
            seal = SealedCount.Seal(box)
            return
        }
        guard case .array(let parts)? = value, parts.count == 2,
            case .integer(let times) = parts[0],
            let total = Number(parts[1])
        else { return nil }
        self.init(times: times, total: total)
    }

    var value: PropertyListValue {
        let value = PropertyListValue.array([.integer(times), total.value])
        return seal.flatMap { seal in SealedCount(value).map { .sealed(seal.box($0)) } } ?? value
    }

    /// The record that removes all of this: added to the count, it gives zero.
    var removal: Count { Count(times: times, total: .zero - total, seal: seal) }
}
