// SPDX-License-Identifier: Apache-2.0

/// The commit of a group of pushes to a database that others use too, over a connection that may be
/// lost: what is tried, for how long, and what that means for each push.
///
/// The whole group is tried first. If one of its stores may be what fails it, each half of the stores
/// is tried by itself, so that the others do not suffer. An attempt whose answer was lost may have
/// been committed: whatever is tried of it afterwards may be a repetition.
package struct GroupCommit<Store: Hashable & Comparable & Sendable, Outcome: Sendable>: Sendable {
    /// The pushes that are tried in one transaction.
    package struct Part: Sendable {
        /// The places of the pushes in the group, in order.
        package let pushes: [Int]
        /// Whether others wait for it, so that it does not wait long for a lock.
        package let isHalf: Bool
        fileprivate var attempts: Attempts

        /// Whether it may have been committed.
        package var mayBeRepeated: Bool { attempts.isInDoubt }
    }

    private let stores: [Store]
    /// The parts that are left. The last one is tried next.
    private var parts: [Part]
    private var found: [Outcome?]

    /// - Parameters:
    ///   - stores: The store of each push.
    ///   - patience: How long the group is tried after a failure, in milliseconds.
    package init(of stores: [Store], patience: Int64) {
        self.stores = stores
        found = Array(repeating: nil, count: stores.count)
        let attempts = Attempts(patience: patience)
        parts = [Part(pushes: Array(stores.indices), isHalf: false, attempts: attempts)]
    }

    /// The time for which a half is tried.
    private static var halfPatience: Int64 { 500 }

    /// The part to try now; nil if nothing is left.
    package var part: Part? { parts.last }

    /// The results of the pushes, in order, when no part is left.
    package var results: [Outcome] { found.compactMap(\.self) }

    /// The current part was committed.
    /// - Parameter results: Those of its pushes, in order.
    package mutating func committed(_ results: [Outcome]) { finish(results) }

    /// An attempt at the current part failed.
    /// - Parameter now: The time of a monotonic clock, in milliseconds.
    /// - Returns: How many milliseconds to wait at most before the next attempt, at this part or at
    ///   halves of it; nil if the part is given up, see ``giveUp(_:)``.
    package mutating func failed(_ failure: CommitFailure, now: Int64) -> Int64? {
        guard let last = parts.indices.last else { return nil }
        let pause = parts[last].attempts.failed(
            isTransient: failure.isTransient, isInDoubt: failure.isInDoubt, now: now)
        return failure.mayBeOfOneStore && halve() ? 0 : pause
    }

    /// Ends the current part without another attempt.
    /// - Parameter result: That of each of its pushes.
    package mutating func giveUp(_ result: Outcome) {
        finish(Array(repeating: result, count: part?.pushes.count ?? 0))
    }

    private mutating func finish(_ results: [Outcome]) {
        guard let part = parts.popLast() else { return }
        for (place, result) in zip(part.pushes, results) { found[place] = result }
    }

    /// - Returns: Whether the current part has several stores.
    private mutating func halve() -> Bool {
        guard let part else { return false }
        let stores = Set(part.pushes.map { self.stores[$0] }).sorted()
        guard stores.count > 1 else { return false }
        let first = Set(stores.prefix(stores.count / 2))
        parts.removeLast()
        for isFirst in [false, true] {
            parts.append(
                Part(
                    pushes: part.pushes.filter { first.contains(self.stores[$0]) == isFirst },
                    isHalf: true,
                    attempts: Attempts(
                        patience: Self.halfPatience, isInDoubt: part.mayBeRepeated)))
        }
        return true
    }
}

/// The failure of an attempt to commit.
package struct CommitFailure: Hashable, Sendable {
    /// Whether it may pass.
    package var isTransient: Bool
    /// Whether the attempt may have been committed.
    package var isInDoubt: Bool
    /// Whether it may be due to one of the stores.
    package var mayBeOfOneStore: Bool

    package init(isTransient: Bool, isInDoubt: Bool = false, mayBeOfOneStore: Bool = false) {
        (self.isTransient, self.isInDoubt) = (isTransient, isInDoubt)
        self.mayBeOfOneStore = mayBeOfOneStore
    }
}

/// Repeated attempts at something whose answer may be lost: when there is another one, and whether an
/// earlier one may have taken effect.
package struct Attempts: Hashable, Sendable {
    /// Whether an attempt may have taken effect.
    package private(set) var isInDoubt: Bool
    private let patience: Int64
    /// The end of the patience; nil before the first failure.
    private var end: Int64?
    private var pause: Int64 = 5

    /// In milliseconds.
    private static let pauseMax: Int64 = 500

    /// - Parameters:
    ///   - patience: The time for further attempts from the first failure on, in milliseconds. It
    ///     begins anew with the first doubt: the caller is to know whether it was done.
    ///   - isInDoubt: Whether the caller's own attempt may have taken effect.
    package init(patience: Int64, isInDoubt: Bool = false) {
        (self.patience, self.isInDoubt) = (patience, isInDoubt)
    }

    /// An attempt failed.
    /// - Parameter now: The time of a monotonic clock, in milliseconds.
    /// - Returns: How many milliseconds to wait at most, and at least half as long, before the next
    ///   attempt; nil if there is none.
    package mutating func failed(isTransient: Bool, isInDoubt: Bool, now: Int64) -> Int64? {
        if end == nil || isInDoubt && !self.isInDoubt { end = now + patience }
        self.isInDoubt = self.isInDoubt || isInDoubt
        guard isTransient, let end, now < end else { return nil }
        defer { pause = min(2 * pause, Self.pauseMax) }
        return pause
    }
}
