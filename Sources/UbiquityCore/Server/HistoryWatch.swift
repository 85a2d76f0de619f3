// SPDX-License-Identifier: Apache-2.0

/// Notices that a shared database lost what it had confirmed, such as when a copy of it was put in
/// its place: within one history, neither the position of its log nor a store's revision ever
/// decreases. And notices a primary that was replaced and does not know it, such as one whose machine
/// came back: of one database system, whoever was promoted has a higher timeline.
///
/// Looks at the database overlap, and their results come in any order. So each is compared with what
/// was known when it began, see ``floor``.
package struct HistoryWatch: Sendable {
    /// The state of one store.
    package struct Revision: Hashable, Sendable {
        /// The store's number. A store that is deleted and made again has another.
        package var store: Int64
        package var revision: Int64

        package init(store: Int64, revision: Int64) {
            (self.store, self.revision) = (store, revision)
        }
    }

    /// The result of one look at the database.
    package struct Sight: Hashable, Sendable {
        package var history: DatabaseHistory
        /// The position up to which the log is on the disk; nil if the database has none.
        package var log: Int64?
        package var revisions: [Revision]

        package init(history: DatabaseHistory, log: Int64?, revisions: [Revision] = []) {
            (self.history, self.log, self.revisions) = (history, log, revisions)
        }
    }

    /// The state known when a look begins, which is the least that it must find.
    package struct Floor: Hashable, Sendable {
        fileprivate var history: DatabaseHistory?
        fileprivate var log: Int64?
        /// The number of looks that are known.
        fileprivate var looks = 0
    }

    private struct Known: Sendable {
        var revision: Int64
        /// The number of the look that found it.
        var look: Int
    }

    /// The verdict of a look on the database.
    package enum Verdict: Hashable, Sendable {
        case trusted
        /// The database is of a history that another one has replaced, and must not be used.
        case replaced
        /// It has lost something. How, for the operator's log.
        case wentBack(String)
    }

    package private(set) var floor = Floor()
    /// The newest primary that was met; nil if there was none, or the engine does not say.
    package private(set) var primary: DatabaseHistory.Primary?
    /// The histories before this one, the oldest first.
    private var replaced: [DatabaseHistory] = []
    /// The stores of this history, in two generations: when the younger one is full, the older one
    /// is dropped.
    private var young: [Int64: Known] = [:]
    private var old: [Int64: Known] = [:]
    private let generationMax: Int

    /// - Parameter generationMax: The stores with which a generation is full.
    package init(generationMax: Int = 16_384) { self.generationMax = generationMax }

    private static let replacedMax = 64

    /// Whether another primary of its system is known to have replaced it.
    package func isReplaced(_ other: DatabaseHistory.Primary) -> Bool {
        guard let primary, primary.system == other.system else { return false }
        return other.timeline < primary.timeline
    }

    /// Takes note of a primary that answers, or that somebody has met.
    /// - Returns: False if it was replaced, and must not be used.
    package mutating func meet(_ other: DatabaseHistory.Primary) -> Bool {
        guard !isReplaced(other) else { return false }
        // One of another system is the newer one only if nothing else is said of its history.
        if primary == nil || primary?.system == other.system { primary = other }
        return true
    }

    /// Takes note of a look that has begun at a floor.
    package mutating func note(_ sight: Sight, since floor: Floor) -> Verdict {
        // Whatever was known when it began.
        if let primary = sight.history.primary, !meet(primary) { return .replaced }
        if floor.history == sight.history, let reason = reason(sight, below: floor) {
            return .wentBack(reason)
        }
        if self.floor.history != sight.history {
            // Of two histories of one timeline, or of different systems, the one that was not known
            // before is the newer one.
            guard floor.history == self.floor.history else { return .trusted }
            guard !replaced.contains(sight.history) else { return .replaced }
            if let history = self.floor.history { replaced.append(history) }
            if replaced.count > Self.replacedMax { replaced.removeFirst() }
            self.floor = Floor(history: sight.history, looks: self.floor.looks)
            primary = sight.history.primary
            (young, old) = ([:], [:])
        }
        self.floor.looks += 1
        if let log = sight.log { self.floor.log = max(log, self.floor.log ?? log) }
        for item in sight.revisions { note(item) }
        return .trusted
    }

    private func reason(_ sight: Sight, below floor: Floor) -> String? {
        if let known = floor.log, let log = sight.log, log < known {
            return "its log was at \(known) and is at \(log)"
        }
        for item in sight.revisions {
            guard let known = young[item.store] ?? old[item.store] else { continue }
            if known.look <= floor.looks, item.revision < known.revision {
                return "a store was at revision \(known.revision) and is at \(item.revision)"
            }
        }
        return nil
    }

    private mutating func note(_ item: Revision) {
        let known = young[item.store] ?? old[item.store]
        if let known, known.revision > item.revision { return }
        young[item.store] = Known(revision: item.revision, look: floor.looks)
        guard young.count >= generationMax else { return }
        (old, young) = (young, [:])
    }
}
