// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// A store's history has every value that was ever committed, within its limits, and none that was
/// not; the list that a device makes of it has neither; the store of each moment that it knows is what it was; and a device sends what its apps
/// exclude from it as excluded, whichever of them sends it.
package final class HistoryChecker: Checker {
    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        if case .pushes(let process, let push, _, _) = observation {
            return unmarked(push, of: process, history)
        }
        guard case .kept(let view) = observation else { return nil }
        return
            (invented(view) ?? missing(view) ?? forgotten(view) ?? wrongMoment(view)
            ?? wrongList(view)).map {
                "the history of \(view.store) \($0)"
            }
    }

    /// Another device may not know that the key is excluded, and offer the write to a restored
    /// server.
    private func unmarked(_ push: Push, of process: Int, _ history: History) -> String? {
        for transaction in push.transactions {
            for write in transaction.writes where !transaction.unkept.contains(write.key) {
                guard let mark = Mark(write.content.value),
                    let known = history.writes[mark.number], known.isUnkept,
                    known.disk == history.disks[process]
                else { continue }
                return "process \(process) pushed \(write.key)=\(mark.number), as if a history "
                    + "could have it"
            }
        }
        return nil
    }

    private func invented(_ view: HistoryView) -> String? {
        for (line, content) in view.lines {
            guard let ended = line.ended, line.isVersion else { continue }
            // The answer to a count tells what became of it in the end, and not that it had lost.
            if line.isLost, line.key.isCount { continue }
            let record = Record(key: line.key, content: content, stamp: line.stamp)
            let isKnown = view.log.entries[line.key]?.contains { entry in
                entry.record == record && !entry.isUnkept && entry.came == line.came
                    && entry.ended == ended
            }
            guard isKnown ?? false else { return "has \(record), which must not be there" }
        }
        return nil
    }

    private func missing(_ view: HistoryView) -> String? {
        var found: [Key: [HistoryRule.Line]] = [:]
        for (line, _) in view.lines where line.ended != nil && line.isVersion {
            found[line.key, default: []].append(line)
        }
        for (key, entries) in view.log.entries {
            let ended = entries.filter { $0.ended != nil && !$0.isUnkept }.sorted {
                ($0.ended!.revision, $0.came.revision, $0.record.stamp)
                    > ($1.ended!.revision, $1.came.revision, $1.record.stamp)
            }
            let lines = found[key] ?? []
            for entry in promised(ended, view.rule.limits) {
                let moment = entry.ended!
                guard moment.revision > view.state.history.floor.revision,
                    moment.milliseconds + view.rule.limits.milliseconds > view.greatestNow,
                    !entry.isLost || view.hasRoom
                else { continue }
                let isThere = lines.contains {
                    $0.stamp == entry.record.stamp
                        && (entry.isLost || $0.came == entry.came && $0.ended == moment)
                }
                if !isThere { return "lacks \(entry.record), ended with \(moment.revision)" }
            }
        }
        return nil
    }

    /// Each value in the list of a key without parts was committed so, removals included, and what is missing
    /// is a gap.
    private func wrongList(_ view: HistoryView) -> String? {
        let lines = Dictionary(grouping: view.lines) { $0.line.key.whole }
        let parts = Set(view.log.entries.keys.filter(\.isPart).map(\.whole))
        for (key, own) in lines where !parts.contains(key) {
            let entries = (view.log.entries[key] ?? []).filter { !$0.isLost }
            let versions = own.compactMap { $0.line.version($0.content) }
            for version in KeyHistory(of: key, from: versions).versions(newest: .max) {
                let isKnown: Bool
                switch version.outcome {
                case .waiting, .lost, .refused: continue
                case .gap:
                    let from = version.came?.revision ?? 0
                    isKnown = entries.contains { entry in
                        entry.came.revision >= from && !versions.contains { $0.came == entry.came }
                    }
                case .current, .replaced:
                    isKnown = entries.contains {
                        $0.record.stamp.withoutDigest == version.stamp.withoutDigest
                            && $0.record.content.value == version.value
                    }
                }
                guard isKnown else {
                    let what = version.value.map { "\($0)" } ?? "removed"
                    return "lists \(key)=\(version.outcome == .gap ? "a gap" : what), from "
                        + "revision \(version.came?.revision ?? 0), which was not there"
                }
            }
        }
        return nil
    }

    /// The newest versions of an entry, and of the last minutes, hours and days the values that stayed
    /// longest.
    /// - Parameter ended: The latest first.
    private func promised(
        _ ended: [VersionLog.Entry], _ limits: HistoryLimits
    ) -> [VersionLog.Entry] {
        var promised = Array(ended.prefix(limits.newestMax))
        for period in HistoryLimits.periodsMilliseconds {
            let periods = Dictionary(grouping: ended.filter { !$0.isLost }) {
                $0.came.milliseconds / period
            }
            var seen: [Int64] = []
            for entry in ended where !entry.isLost {
                let number = entry.came.milliseconds / period
                if !seen.contains(number) { seen.append(number) }
            }
            for number in seen.prefix(limits.periodsMax) {
                let longest = periods[number]?.map(\.duration).max()
                let entry = periods[number]?.first { $0.duration == longest }
                entry.map { promised.append($0) }
            }
        }
        return promised
    }

    /// Why nothing from before a moment is known.
    private func forgotten(_ view: HistoryView) -> String? {
        let floor = view.state.history.floor
        guard floor.revision > view.log.began, view.hasRoom else { return nil }
        let isOld = floor.milliseconds + view.rule.limits.milliseconds <= view.greatestNow
        return isOld ? nil : "reaches back to revision \(floor.revision) only"
    }

    private func wrongMoment(_ view: HistoryView) -> String? {
        let (first, last) = (view.state.history.floor.revision, view.state.lineage.revision)
        for revision in Set([first, (first + last) / 2, last - 1, last]).sorted()
        where (first...last).contains(revision) {
            let snapshot: HistoryRule.Snapshot
            do throws(HistoryForgotten) {
                snapshot = try view.rule.snapshot(
                    of: view.lines.map(\.line), at: .revision(revision), in: view.state)
            } catch {
                let age = view.greatestNow - error.knownSince
                guard age >= view.rule.limits.milliseconds || revision <= view.log.began else {
                    return "does not know revision \(revision)"
                }
                continue
            }
            var held: [Key: Record] = [:]
            for place in snapshot.chosen {
                let (line, content) = view.lines[place]
                held[line.key] = Record(key: line.key, content: content, stamp: line.stamp)
            }
            if let complaint = compare(held, snapshot.forgotten, view, at: revision) {
                return complaint
            }
        }
        return nil
    }

    private func compare(
        _ held: [Key: Record], _ forgotten: Set<Key>, _ view: HistoryView, at revision: Int64
    ) -> String? {
        var expected: [Key: Record] = [:]
        for (key, entries) in view.log.entries where !forgotten.contains(key.whole) {
            for entry in entries
            where !entry.isLost && entry.came.revision <= revision
                && entry.ended.map({ $0.revision > revision }) ?? true
                && entry.record.content != .deleted
            {
                expected[key] = entry.record
            }
        }
        guard held == expected else {
            let keys = Set(held.keys).union(expected.keys).filter { held[$0] != expected[$0] }
            return "does not have \(keys.sorted()) as of revision \(revision)"
        }
        let wrong = forgotten.filter { key in
            view.log.unkept[key].map { $0 <= revision } ?? true
                && !view.log.entries.contains { entry in
                    entry.key.whole == key
                        && (entry.value.count > view.rule.limits.newestMax
                            || entry.value.contains(where: \.isUnkept))
                }
        }
        return wrong.isEmpty ? nil : "has forgotten \(wrong.sorted()) without a reason"
    }
}

extension HistoryView {
    /// Whether its bytes are hardly ever a limit.
    fileprivate var hasRoom: Bool { rule.limits.bytesMax >= 1 << 20 }
}

extension HistoryRule.Line {
    fileprivate var isLost: Bool { if case .lost = fate { true } else { false } }

    fileprivate var isVersion: Bool { if case .forgotten = fate { false } else { true } }
}
