// SPDX-License-Identifier: Apache-2.0

/// A value that a key had, as apps saw it, or a write of it that never became its value.
package struct KeyVersion: Hashable, Sendable {
    /// Without a part.
    package var key: Key
    /// Nil if the key had no value any more.
    package var value: PropertyListValue?
    /// When and by which device the value was made: the stamp of the newest write in it.
    package var stamp: Stamp
    /// When the server got it; nil if it did not, or if that is not known. The time is 0 if that
    /// was before there was a history.
    package var came: RecordVersion.Moment?
    package var outcome: Outcome

    package enum Outcome: Hashable, Sendable {
        /// On its way to the server. Only its own device has it.
        case waiting
        /// The key's value.
        case current
        /// It was the key's value until the moment at which the write with this stamp changed it.
        case replaced(RecordVersion.Moment, by: Stamp)
        /// When it came, there was a later write, which has this stamp.
        case lost(RecordVersion.Moment, by: Stamp)
        /// The server refused it, or it was superseded before it was sent. Only its own device has it.
        case refused(Refusal)
        /// Not a version: the values that the key had from then until the next version are not in the
        /// history any more. The stamp is that of the first of them.
        case gap
    }

    package init(
        key: Key, value: PropertyListValue?, stamp: Stamp, came: RecordVersion.Moment? = nil,
        outcome: Outcome
    ) {
        self.key = key
        self.value = value
        self.stamp = stamp
        self.came = came
        self.outcome = outcome
    }

    /// A write that never became the key's value.
    /// - Returns: Nil for a part that means nothing alone, such as a run's count.
    package init?(_ record: Record, came: RecordVersion.Moment? = nil, _ outcome: Outcome) {
        let policy = record.key.part?.policy
        let isRaise = record.content.value.map { ComparableValue($0) != nil } ?? false
        guard !record.key.isPart || isRaise && policy?.isExtremum == true else {
            return nil
        }
        self.init(
            key: record.key.whole, value: record.content.value, stamp: record.stamp, came: came,
            outcome: outcome)
    }

    /// Identifies it among the versions of its key, for a person to type: 8 hexadecimal digits.
    package var name: String {
        var hash = StableHash()
        for number in [stamp.timestamp.rawValue, stamp.device.rawValue, stamp.digest] {
            for shift in stride(from: UInt64(0), to: 64, by: 8) {
                hash.combine(number >> shift & 0xFF)
            }
        }
        return String(hash.value.hexadecimal.prefix(8))
    }
}

/// Replays the versions of one key and its parts, as the server has them, to the values that apps
/// saw.
///
/// The server's revisions are the order in which values changed: the stamps only decided which
/// write won. With a policy, a version is the value that all parts made together.
package struct KeyHistory: Sendable {
    private let key: Key
    /// The versions that were the store's for at least one revision.
    private var held: [RecordVersion] = []
    private var neverHeld: [KeyVersion] = []

    /// - Parameter versions: May have those of other keys. For a key with parts, all must be there;
    ///   without parts, the newest are enough.
    package init(of key: Key, from versions: some Sequence<RecordVersion>) {
        self.key = key
        for version in versions where version.record.key.name == key.name {
            switch version.outcome {
            case .lost(let moment, let stamp):
                KeyVersion(version.record, came: version.came, .lost(moment, by: stamp))
                    .map { neverHeld.append($0) }
            case .replaced(let moment, let stamp) where moment.revision == version.came?.revision:
                KeyVersion(version.record, came: version.came, .replaced(moment, by: stamp))
                    .map { neverHeld.append($0) }
            case .replaced, .current: held.append(version)
            }
        }
    }

    /// The versions of the key, latest arrival first.
    ///
    /// A write of a part that does not change the key's value is not a version, as when a server
    /// folds a counter.
    /// - Parameters:
    ///   - max: The most versions to return.
    ///   - resolver: The app's own rule, for ``MergePolicy/register``.
    /// - Complexity: O(*n* log *n*) in the number of versions, and as much as reading the key for
    ///   each one returned.
    package func versions(newest max: Int, _ resolver: Resolver? = nil) -> [KeyVersion] {
        let all = values(newest: max, resolver) + neverHeld
        let revisions = all.map { $0.came?.revision ?? 0 }
        let order = all.indices.sorted { a, b in
            revisions[a] != revisions[b] ? revisions[a] > revisions[b] : a < b
        }
        return order.prefix(max).map { all[$0] }
    }

    /// One revision: what came with it, and what it ended.
    private struct Step {
        var came: [RecordVersion] = []
        var ended: [(record: Record, by: Stamp)] = []
        var moment: RecordVersion.Moment?
        /// The number of entries of which the next version that is known came with it, although the one
        /// before had ended earlier, less those of which such a time began.
        var gaps = 0
    }

    private var steps: [Int64: Step] {
        var steps: [Int64: Step] = [:]
        for version in held {
            let revision = version.came?.revision ?? 0
            steps[revision, default: Step()].came.append(version)
            if let came = version.came { steps[revision]?.moment = came }
            guard case .replaced(let moment, let stamp) = version.outcome else { continue }
            steps[moment.revision, default: Step()].ended.append((version.record, stamp))
            steps[moment.revision]?.moment = moment
        }
        for entry in Dictionary(grouping: held, by: { $0.record.key }).values {
            let order = entry.sorted { ($0.came?.revision ?? 0) < ($1.came?.revision ?? 0) }
            for (version, next) in zip(order, order.dropFirst()) {
                guard let ended = version.ended?.revision, let came = next.came?.revision,
                    ended < came
                else { continue }
                steps[came]?.gaps += 1
                steps[ended]?.gaps -= 1
            }
        }
        return steps
    }

    /// Goes back from the present, one revision at a time.
    ///
    /// Between the end of a record and the next one of the same entry, the server had others, which were
    /// thinned out, or a tombstone that was compacted: what the key was then is not known. The newest
    /// record that has ended is not thinned out, so that after it, there was a tombstone or nothing.
    private func values(newest max: Int, _ resolver: Resolver?) -> [KeyVersion] {
        var state: [Key: Record] = [:]
        for version in held where version.outcome == .current {
            state[version.record.key] = version.record
        }
        var value = self.value(of: state, resolver)
        var outcome = KeyVersion.Outcome.current
        var gaps = 0
        var result: [KeyVersion] = []
        for (_, step) in steps.inOrder(by: { $0.key > $1.key }) where result.count < max {
            for version in step.came { state[version.record.key] = nil }
            for (record, _) in step.ended { state[record.key] = record }
            let isGap = gaps > 0
            gaps += step.gaps
            // A gap is listed once, where it began.
            if isGap, gaps > 0 { continue }
            let earlier = self.value(of: state, resolver)
            let isWritten = step.came.contains { !$0.record.key.isPart }
            guard isWritten || isGap || gaps > 0 || earlier != value,
                // A tombstone that the server has dropped is no longer among those that came.
                let author = step.came.map({ $0.record.stamp }).max()
                    ?? step.ended.map({ $0.by }).max()
            else { continue }
            result.append(
                KeyVersion(
                    key: key.whole, value: isGap ? nil : value, stamp: author, came: step.moment,
                    outcome: isGap ? .gap : outcome))
            if let moment = step.moment { outcome = .replaced(moment, by: author.withoutDigest) }
            value = earlier
        }
        return result
    }

    private func value(of state: [Key: Record], _ resolver: Resolver?) -> PropertyListValue? {
        var base: ConcurrentValue?
        var parts: [MergeState.Part] = []
        for record in state.values {
            guard let value = record.content.value else { continue }
            let concurrent = ConcurrentValue(value: value, stamp: record.stamp)
            if let id = record.key.part {
                parts.append(MergeState.Part(id: id, concurrent))
            } else {
                base = concurrent
            }
        }
        return MergeState(base: base, parts: parts).value(resolver)
    }
}

extension [KeyVersion] {
    /// The server's versions of a key, the newest first, with those that only this device has: what
    /// waits is first, and what was refused is among those of its time.
    package func adding(own: [KeyVersion], newest max: Int) -> [KeyVersion] {
        let known = Set(map { $0.stamp })
        var result = self
        for version in own {
            switch version.outcome {
            case .waiting:
                if !known.contains(version.stamp) { result.insert(version, at: 0) }
            case .refused where known.contains(version.stamp): break
            case .refused:
                let place = result.firstIndex {
                    $0.outcome != .waiting && $0.milliseconds < version.milliseconds
                }
                result.insert(version, at: place ?? result.endIndex)
            case .current, .replaced, .lost, .gap: break
            }
        }
        return Array(result.prefix(max))
    }

    /// The versions from before the newest value: what an undo may go back to.
    package var earlierValues: [KeyVersion] { Array(filter { $0.isHeld }.dropFirst()) }

    /// The value that an undo of the key restores: the newest of ``earlierValues`` that differs.
    /// - Parameter now: The key's value.
    /// - Returns: Nil if no other value is known.
    package func earlierValue(than now: PropertyListValue?) -> EarlierValue? {
        if let earlier = earlierValues.first(where: { $0.value != now }) {
            return .known(earlier.value)
        }
        guard now != nil, let came = last?.came, came.milliseconds > 0 else { return nil }
        return .atRevision(came.revision - 1)
    }
}

/// A key's value before the one that it has.
package enum EarlierValue: Hashable, Sendable {
    /// Nil if the key had no value.
    case known(PropertyListValue?)
    /// The value at this revision of the store, just before the oldest version that is known:
    /// nothing, or a version that the history no longer has.
    case atRevision(Int64)
}

extension KeyVersion {
    /// Whether it is or was the key's value.
    var isHeld: Bool {
        switch outcome {
        case .waiting, .current, .replaced: true
        case .lost, .refused, .gap: false
        }
    }

    /// When the server got it, or, where that is not known, when it was made.
    package var milliseconds: Int64 {
        guard let came, came.milliseconds > 0 else { return stamp.timestamp.milliseconds }
        return came.milliseconds
    }
}
