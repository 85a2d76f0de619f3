// SPDX-License-Identifier: Apache-2.0

/// Decides which versions of a store are kept, and which are shown.
///
/// Of each entry a number of versions are kept: the newest, and of the time before them the one of each
/// minute, hour and day that stayed longest, up to a number of each, so that a flood of writes does not push
/// out what the entry was yesterday, nor what it was just before. Of these the ones that did not end too long ago are kept, up to a number of
/// bytes: beyond it, the entries with the most bytes keep fewer of what lies close together, and then the
/// oldest versions go. What is beyond the limits is not shown either, so it does not matter when it is
/// removed.
package struct HistoryRule: Hashable, Sendable {
    package var limits: HistoryLimits
    /// The server's milliseconds since 1970.
    package var now: Int64

    package init(_ limits: HistoryLimits, now: Int64) {
        self.limits = limits
        self.now = now
    }

    /// The rule with an account's own limits.
    package func of(_ account: AccountLimits) -> HistoryRule {
        HistoryRule(account.applied(to: limits), now: now)
    }

    /// A version without its value, or the note that what an entry was is not known.
    package struct Line: Hashable, Sendable {
        package enum Fate: Hashable, Sendable {
            /// - Parameter isKept: Whether it may be in the history, now or later.
            case current(isKept: Bool)
            case replaced(RecordVersion.Moment, by: Stamp)
            case lost(RecordVersion.Moment, by: Stamp)
            /// The entry's earlier state is not known.
            case forgotten(RecordVersion.Moment)
        }

        package var key: Key
        package var stamp: Stamp
        /// The time is 0 if it is not known.
        package var came: RecordVersion.Moment
        package var fate: Fate
        package var isDeletion: Bool
        /// See ``HistoryRule/bytes(key:value:)``.
        package var bytes: Int

        package init(
            key: Key, stamp: Stamp, came: RecordVersion.Moment, fate: Fate, isDeletion: Bool,
            bytes: Int
        ) {
            self.key = key
            self.stamp = stamp
            self.came = came
            self.fate = fate
            self.isDeletion = isDeletion
            self.bytes = bytes
        }

        /// The note that what an entry was before is not known, and that of none of the key's.
        package init(forgotten key: Key, before moment: RecordVersion.Moment) {
            self.init(
                key: key, stamp: Stamp(.zero, .unassigned), came: .start, fate: .forgotten(moment),
                isDeletion: true, bytes: HistoryRule.bytes(key: key.bytesCount, value: 0))
        }

        /// The note that what an entry was before is only known for the times of its versions.
        package init(thinned key: Key, before moment: RecordVersion.Moment) {
            self.init(forgotten: key, before: moment)
            came = moment
            // Distinguishes it from the other note with this end.
            stamp.digest = 1
        }

        /// Nil for a current record.
        package var ended: RecordVersion.Moment? {
            switch fate {
            case .current: nil
            case .replaced(let moment, by: _), .lost(let moment, by: _), .forgotten(let moment):
                moment
            }
        }

        var isForgotten: Bool { if case .forgotten = fate { true } else { false } }

        /// The milliseconds for which the store held it, until it was replaced.
        package var duration: Int64 { ended.map { $0.milliseconds - came.milliseconds } ?? 0 }

        /// Whether this is a note that leaves room for older versions.
        var isThinned: Bool { isForgotten && came != .start }

        fileprivate var isVersion: Bool { ended != nil && !isForgotten }

        /// Before which moment the store is not known without this; nil if it is.
        fileprivate var needed: RecordVersion.Moment? {
            if case .lost = fate { nil } else { ended }
        }
    }

    /// The bytes that a version counts, with its key and value as stored.
    package static func bytes(key: Int, value: Int) -> Int { Record.pushBytesMin + key + value }

    /// After pruning this part of the limit is used, so that it is not needed with the next push.
    private static let bytesLeft = (of: 8, parts: 7)

    /// The changes by which a history is pruned.
    package struct Pruning: Hashable, Sendable {
        /// The places of the lines to remove, in ascending order.
        package var removed: [Int] = []
        /// The notes to add.
        package var forgotten: [Line] = []
        package var state: HistoryState
    }

    /// - Parameters:
    ///   - lines: All versions and notes of the store. Current records are left alone.
    ///   - state: The store's.
    ///   - limitsBytes: False if the lines may be only a part of the store's.
    package func prune(
        _ lines: [Line], of state: HistoryState, limitsBytes: Bool = true
    ) -> Pruning {
        var cut = Cut(lines, floor: state.floor)
        cutByNumber(&cut)
        cutByAge(&cut)
        if limitsBytes { cutByBytes(&cut) }
        return cut.pruning
    }

    private func cutByNumber(_ cut: inout Cut) {
        let numbers = Numbers(limits)
        var counts: [Key: Int] = [:]
        for line in cut.lines where line.isVersion { counts[line.key, default: 0] += 1 }
        counts = counts.filter { $0.value > numbers.newest }
        guard !counts.isEmpty else { return }
        for (key, places) in cut.versions(where: { counts[$0] != nil }) {
            thin(key, places, to: numbers, &cut)
        }
    }

    /// The most versions of an entry that are kept.
    private struct Numbers {
        var newest: Int
        /// Of minutes, hours and days.
        var periods: [Int]

        init(_ limits: HistoryLimits) {
            newest = limits.newestMax
            periods = Array(
                repeating: limits.periodsMax, count: HistoryLimits.periodsMilliseconds.count)
        }

        /// Fewer of those that lie closest together; nil if only those of days are left.
        var fewer: Numbers? {
            var fewer = self
            if newest > 1 {
                fewer.newest /= 2
            } else if let place = periods.dropLast().firstIndex(where: { $0 > 0 }) {
                fewer.periods[place] = 0
            } else {
                return nil
            }
            return fewer
        }
    }

    /// - Parameter places: The entry's versions, the latest first.
    private func thin(_ key: Key, _ places: [Int], to numbers: Numbers, _ cut: inout Cut) {
        let excess = excess(of: places, to: numbers, cut.lines)
        for place in excess { cut.drop(place) }
        let needed = excess.compactMap { cut.lines[$0].needed }.max { $0.revision < $1.revision }
        if let needed { cut.note(Line(thinned: key, before: needed)) }
    }

    /// The versions of an entry that are neither among the newest nor the one of a period that stayed
    /// longest.
    ///
    /// One that was removed would never be kept later, because the one that stayed longer is kept for as
    /// long as their period: so it does not matter when they are pruned, nor how often.
    private func excess(of places: [Int], to numbers: Numbers, _ lines: [Line]) -> [Int] {
        var rest = Array(places.dropFirst(numbers.newest))
        for (period, max) in zip(HistoryLimits.periodsMilliseconds, numbers.periods) {
            var longest: [Int64: Int] = [:]
            // A write that lost was never what the entry was.
            for place in rest where lines[place].needed != nil {
                let number = lines[place].came.milliseconds / period
                if let other = longest[number] {
                    if lines[place].duration > lines[other].duration { longest[number] = place }
                } else if longest.count < max {
                    longest[number] = place
                }
            }
            let kept = Set(longest.values)
            rest.removeAll { kept.contains($0) }
        }
        return rest
    }

    private func cutByAge(_ cut: inout Cut) {
        for (place, line) in cut.lines.enumerated() {
            guard let ended = line.ended else { continue }
            if limits.isOff || now - ended.milliseconds > limits.milliseconds { cut.remove(place) }
        }
    }

    private func cutByBytes(_ cut: inout Cut) {
        guard cut.bytes > limits.bytesMax else { return }
        let left = limits.bytesMax / Self.bytesLeft.of * Self.bytesLeft.parts
        // The entry with the most bytes first: it is the flood, and must not push out the others.
        let largest = cut.versions { _ in true }.map { key, places in
            (bytes: places.reduce(0) { $0 + cut.lines[$1].bytes }, key: key, places: places)
        }.sorted { ($0.bytes, $1.key) > ($1.bytes, $0.key) }
        for (bytes, key, places) in largest where bytes > Self.floodBytesMin {
            var numbers = Numbers(limits)
            while cut.bytes > left, let fewer = numbers.fewer {
                numbers = fewer
                thin(key, places.filter { !cut.isRemoved[$0] }, to: numbers, &cut)
            }
        }
        guard cut.bytes > left else { return }
        let oldest = cut.lines.indices.filter { cut.lines[$0].ended != nil && !cut.isRemoved[$0] }
            .sorted { cut.lines[$1].isLater(than: cut.lines[$0]) }
        for place in oldest {
            guard cut.bytes > left else { break }
            cut.remove(place)
        }
    }

    /// An entry with fewer bytes is none: a note in place of its versions would gain little.
    private static let floodBytesMin = 4_096

    /// Lines, and what is cut off.
    private struct Cut {
        let lines: [Line]
        private(set) var isRemoved: [Bool]
        /// Of the lines that are left and the new notes, or more.
        private(set) var bytes: Int
        /// The new ones: of each entry the newest.
        private var notes: [Key: Line] = [:]
        private var floor: RecordVersion.Moment

        private struct Note: Hashable {
            var key: Key
            var isThinned: Bool
        }

        init(_ lines: [Line], floor: RecordVersion.Moment) {
            self.lines = lines
            self.floor = floor
            isRemoved = Array(repeating: false, count: lines.count)
            bytes = lines.reduce(0) { $0 + ($1.ended == nil ? 0 : $1.bytes) }
        }

        /// The versions of entries that are left, the latest first.
        func versions(where isWanted: (Key) -> Bool) -> [Key: [Int]] {
            var places: [Key: [Int]] = [:]
            for (place, line) in lines.enumerated()
            where line.isVersion && !isRemoved[place] && isWanted(line.key) {
                places[line.key, default: []].append(place)
            }
            return places.mapValues { $0.sorted { lines[$0].isLater(than: lines[$1]) } }
        }

        mutating func note(_ note: Line) {
            if let old = notes[note.key] {
                if let known = old.ended, let new = note.ended, known.revision >= new.revision {
                    return
                }
            } else {
                bytes += note.bytes
            }
            notes[note.key] = note
        }

        /// Removes a line of which a note tells.
        mutating func drop(_ place: Int) {
            guard !isRemoved[place] else { return }
            isRemoved[place] = true
            bytes -= lines[place].bytes
        }

        /// Removes a line so that nothing before its end is known any more.
        mutating func remove(_ place: Int) {
            drop(place)
            if let needed = lines[place].needed, needed.revision > floor.revision { floor = needed }
        }

        var pruning: Pruning {
            var (removed, isRemoved) = ([Int](), isRemoved)
            // The newest note of an entry says more than the others of its kind, and none is needed
            // below the floor.
            var newest: [Note: (moment: RecordVersion.Moment, place: Int?)] = [:]
            func take(_ line: Line, _ place: Int?) {
                guard let ended = line.ended else { return }
                let note = Note(key: line.key, isThinned: line.isThinned)
                if ended.revision <= floor.revision {
                    if let place { isRemoved[place] = true }
                    return
                }
                let old = newest[note]
                if let old, old.moment.revision >= ended.revision {
                    if let place { isRemoved[place] = true }
                    return
                }
                if let place = old?.place { isRemoved[place] = true }
                newest[note] = (ended, place)
            }
            for (place, line) in lines.enumerated() where line.isForgotten && !isRemoved[place] {
                take(line, place)
            }
            for line in notes.values { take(line, nil) }
            let added = notes.values.filter { line in
                let note = Note(key: line.key, isThinned: line.isThinned)
                return newest[note].map { $0.place == nil } ?? false
            }
            var state = HistoryState(floor: floor)
            func count(_ line: Line) {
                guard let ended = line.ended else { return }
                let isFirst = state.bytes == 0
                state.bytes += line.bytes
                state.oldest =
                    isFirst ? ended.milliseconds : min(state.oldest, ended.milliseconds)
            }
            for (place, line) in lines.enumerated() {
                if isRemoved[place] { removed.append(place) } else { count(line) }
            }
            for line in added { count(line) }
            return Pruning(removed: removed, forgotten: added, state: state)
        }
    }
}

extension HistoryRule.Line {
    /// Whether its end came later; of two with the same end, whether it came later itself. A current
    /// record has no end, so it is later than all versions.
    fileprivate func isLater(than other: Self) -> Bool {
        let (mine, others) = (ended?.revision ?? .max, other.ended?.revision ?? .max)
        return (mine, came.revision, stamp) > (others, other.came.revision, other.stamp)
    }
}
