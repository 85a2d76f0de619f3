// SPDX-License-Identifier: Apache-2.0

extension HistoryRule {
    /// A place in the list of a store's versions, to continue after. Opaque to devices.
    package struct Place: Hashable, Comparable, Sendable, CustomStringConvertible {
        /// From the one that decides first. None is negative.
        private let numbers: [UInt64]
        private static let count = 6

        fileprivate init(_ line: Line) {
            var key = StableHash()
            for byte in line.key.bytes { key.combine(UInt64(byte)) }
            numbers = [
                UInt64(clamping: line.came.revision),
                UInt64(clamping: line.ended?.revision ?? .max),
                line.stamp.timestamp.rawValue, line.stamp.device.rawValue, line.stamp.digest,
                // Two keys with the same hash, written at once by one device, do not occur.
                key.value,
            ]
        }

        /// Fails for a text that is not a place's.
        package init?(_ text: String) {
            let parts = text.split(separator: "-", omittingEmptySubsequences: false)
            let numbers = parts.compactMap { UInt64($0, radix: 16) }
            guard text.utf8.count <= 128, parts.count == Self.count, numbers.count == parts.count
            else { return nil }
            self.numbers = numbers
        }

        package var description: String {
            numbers.map { String($0, radix: 16) }.joined(separator: "-")
        }

        package static func < (a: Self, b: Self) -> Bool {
            a.numbers.lexicographicallyPrecedes(b.numbers)
        }
    }

    /// Chooses the versions for one page of a list, those that came last first.
    /// - Parameters:
    ///   - lines: All of the store or of a key, with its current records.
    ///   - place: The end of the page before; nil for the first one.
    ///   - bytesMax: For the lines of the page together. It has one at least, however large.
    /// - Returns: The places of the lines, and where the next page continues; nil if there is none.
    /// - Complexity: O(*n* log *n*) in the number of lines.
    package func page(
        of lines: [Line], after place: Place?, max: Int, bytesMax: Int
    ) -> (chosen: [Int], next: Place?) {
        let hidden = Set(prune(lines, of: HistoryState(), limitsBytes: false).removed)
        let listed = lines.indices.compactMap { index -> (index: Int, place: Place)? in
            guard lines[index].isListed, !hidden.contains(index) else { return nil }
            let own = Place(lines[index])
            return place.map { own < $0 } ?? true ? (index, own) : nil
        }.sorted { $0.place > $1.place }
        var bytes = 0
        let chosen = listed.prefix(max).enumerated().prefix { number, line in
            bytes += lines[line.index].bytes
            return number == 0 || bytes <= bytesMax
        }.map(\.element)
        return (chosen.map(\.index), chosen.count < listed.count ? chosen.last?.place : nil)
    }

    /// A moment in a store's history.
    package enum Time: Hashable, Sendable {
        case revision(Int64)
        /// In milliseconds since 1970, by the server's clock.
        case milliseconds(Int64)
    }

    /// The choice of ``snapshot(of:at:in:)``.
    package struct Snapshot: Hashable, Sendable {
        package var revision: Int64
        /// The places of the lines with the values of then.
        package var chosen: [Int]
        /// The keys, without their parts, whose values at that time are not known. None of their
        /// versions are chosen.
        package var forgotten: Set<Key>
    }

    /// Chooses the versions that a store held at a moment, without tombstones.
    /// - Parameters:
    ///   - lines: All of the store, with its current records.
    ///   - time: A time in the future means now.
    /// - Throws: ``HistoryForgotten`` if the store of then is not known.
    /// - Complexity: O(*n*) in the number of lines.
    package func snapshot(
        of lines: [Line], at time: Time, in state: StoreState
    ) throws(HistoryForgotten) -> Snapshot {
        let pruning = prune(lines, of: state.history, limitsBytes: false)
        let floor = pruning.state.floor
        let revision = min(revision(of: lines, at: time, floor, state), state.lineage.revision)
        guard revision >= floor.revision else {
            throw HistoryForgotten(knownSince: floor.milliseconds)
        }
        var forgotten: Set<Key> = []
        var chosen: [Int] = []
        let removed = Set(pruning.removed)
        let held = lines.indices.filter {
            lines[$0].isHeld(at: revision) && !removed.contains($0)
        }
        let known = Set(held.lazy.map { lines[$0].key })
        for line in lines + pruning.forgotten {
            guard case .forgotten(let moment) = line.fate, moment.revision > revision else {
                continue
            }
            if !line.isThinned || !known.contains(line.key) { forgotten.insert(line.key.whole) }
        }
        // What was cut off by number is in the notes, and by age is below the floor.
        for index in held
        where !lines[index].isDeletion && !forgotten.contains(lines[index].key.whole) {
            chosen.append(index)
        }
        return Snapshot(revision: revision, chosen: chosen, forgotten: forgotten)
    }

    /// The greatest revision that is known to have been there.
    private func revision(
        of lines: [Line], at time: Time, _ floor: RecordVersion.Moment, _ state: StoreState
    ) -> Int64 {
        switch time {
        case .revision(let revision): return revision
        case .milliseconds(let milliseconds):
            guard milliseconds < now else { return state.lineage.revision }
            var greatest: Int64 = 0
            func take(_ moment: RecordVersion.Moment) {
                guard moment.milliseconds > 0, moment.milliseconds <= milliseconds else { return }
                greatest = max(greatest, moment.revision)
            }
            take(floor)
            for line in lines {
                take(line.came)
                line.ended.map(take)
            }
            return greatest
        }
    }
}

extension HistoryRule.Line {
    /// Whether a person may see it in a list.
    fileprivate var isListed: Bool {
        switch fate {
        case .current(let isKept): isKept
        case .replaced, .lost: true
        case .forgotten: false
        }
    }

    /// Whether the store held this at a revision.
    fileprivate func isHeld(at revision: Int64) -> Bool {
        switch fate {
        case .current: came.revision <= revision
        case .replaced(let ended, by: _): came.revision <= revision && ended.revision > revision
        case .lost, .forgotten: false
        }
    }

    /// Nil for a note.
    package func version(_ content: Content) -> RecordVersion? {
        let outcome: RecordVersion.Outcome
        switch fate {
        case .current: outcome = .current
        case .replaced(let moment, by: let stamp): outcome = .replaced(moment, by: stamp)
        case .lost(let moment, by: let stamp): outcome = .lost(moment, by: stamp)
        case .forgotten: return nil
        }
        return RecordVersion(
            record: Record(key: key, content: content, stamp: stamp), came: came, outcome: outcome)
    }
}

/// The error for a moment before which a store's history does not reach.
package struct HistoryForgotten: Error, Hashable, Sendable {
    /// The earliest moment that it reaches, in milliseconds since 1970.
    package var knownSince: Int64

    package init(knownSince: Int64) { self.knownSince = knownSince }
}
