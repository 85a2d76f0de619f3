// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// An app that follows its notifications knows everything that its store shows. It is not notified
/// of things that did not happen, nor of its own writes, and always with the right reason. And
/// notifications of refused writes do not become more frequent the more often it repeats them.
package final class NoticeChecker: Checker {
    private struct Reader {
        /// The app's knowledge: the values at opening, its own writes, and what it read when
        /// notified.
        var known: [Key: PropertyListValue]
        /// The number of causes of change for each key since the app last knew everything.
        var causes: [Key: [Notice.Reason: Int]] = [:]
        /// The number of recent notifications of refused writes.
        var refusals = RecentCount()
    }

    private var apps: [Int: Reader] = [:]
    private let now: () -> Int64

    private static let refusalsMax = 25
    private static let windowMilliseconds: Int64 = 60_000

    /// - Parameter now: The true time, in milliseconds.
    package init(now: @escaping () -> Int64) { self.now = now }

    package func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .opened(let process, _, let values): apps[process] = Reader(known: values)
        case .resumed(let process, _, let original): apps[process] = apps[original]
        case .ended(let process): apps[process] = nil
        case .wrote(let process, let writes): note(writes, of: process)
        case .merged(let act): apps[act.process]?.known[act.key] = act.seen
        case .decided(let process, let key, let value): apps[process]?.known[key] = value
        case .refused(let process, let keys): note(keys, [.quotaViolation], of: process)
        case .changed(let process, let keys, let cause):
            note(keys, cause.reasons, of: process)
        case .notified(let process, let notice, let values):
            return notified(process, notice, values)
        case .rested(let process, let values): return rested(process, values)
        default: break
        }
        return nil
    }

    private func note(_ writes: [AppWrite], of process: Int) {
        for write in writes { apps[process]?.known[write.key] = write.value }
    }

    private func note(_ keys: Set<Key>, _ reasons: Set<Notice.Reason>, of process: Int) {
        for key in keys {
            for reason in reasons {
                apps[process]?.causes[key, default: [:]][reason, default: 0] += 1
            }
        }
    }

    private func notified(
        _ process: Int, _ notice: Notice, _ values: [Key: PropertyListValue?]
    ) -> String? {
        for key in notice.keys.sorted() {
            guard let count = apps[process]?.causes[key]?[notice.reason], count > 0 else {
                return "process \(process) was notified of \(key) as \(notice.reason), and nothing "
                    + "of that kind had happened to it"
            }
            guard let value = values[key] else { return "process \(process) could not read \(key)" }
            apps[process]?.known[key] = value
            apps[process]?.causes[key]?[notice.reason] = count - 1
        }
        return notice.reason == .quotaViolation ? notifiedOfRefusals(process) : nil
    }

    private func notifiedOfRefusals(_ process: Int) -> String? {
        let count = apps[process]?.refusals.note(at: now(), within: Self.windowMilliseconds)
        guard let count, count > Self.refusalsMax else { return nil }
        return "process \(process) was notified \(count) times of refused writes in "
            + "\(Self.windowMilliseconds) ms"
    }

    private func rested(_ process: Int, _ values: [Key: PropertyListValue]) -> String? {
        apps[process]?.causes = [:]
        guard let known = apps[process]?.known, known != values else { return nil }
        let keys = Set(known.keys).union(values.keys).filter { known[$0] != values[$0] }
        return "process \(process) was not notified that \(keys.sorted()) changed"
    }
}

extension Observation.Cause {
    /// The reasons in the contract for this cause.
    fileprivate var reasons: Set<Notice.Reason> {
        switch self {
        case .firstDownload: [.initialSync]
        case .server: [.serverChange]
        // The other process may have had its first download.
        case .otherProcess: [.serverChange, .initialSync]
        // For the quota, or for a deletion whose tombstone was dropped.
        case .answer: [.quotaViolation, .serverChange]
        case .account: [.accountChange]
        }
    }
}

/// Counts recent occurrences.
struct RecentCount {
    private var times: [Int64] = []

    /// Records an occurrence.
    /// - Returns: The number of occurrences in the last so many milliseconds, including this one.
    mutating func note(at now: Int64, within milliseconds: Int64) -> Int {
        times.removeAll { $0 < now - milliseconds }
        times.append(now)
        return times.count
    }
}
