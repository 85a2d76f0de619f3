// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// A fresh install overwrites nothing: if the app asked for that, its earlier writes of keys that
/// the server has are gone with the first download. But a field written under a policy is merged:
/// it is there if it was certainly made later than the server's.
package final class FirstSyncChecker: Checker {
    /// The keys that the current download of a process replaces.
    private var replaced: (disk: DiskReference, keys: Set<Key>)?
    private var acts: [Int: AppOperation] = [:]
    /// The last action there on each field.
    private var last: [DiskReference: [Key: AppOperation]] = [:]
    private var clocks: ClockLedger?

    /// - Parameter timeTolerance: As of ``SurvivalChecker``.
    package init(timeTolerance: Int64? = nil) {
        clocks = timeTolerance.map { ClockLedger(lag: $0 / 2) }
    }

    package func check(_ observation: Observation, _ history: History) -> String? {
        clocks?.note(observation)
        switch observation {
        case .merged(let act): note(act)
        case .withdrawn(let disk, _), .lost(let disk): last[disk] = nil
        default: break
        }
        switch observation {
        case .discarded(let disk, let keys): replaced = (disk, keys)
        // Changes are reported before the download counts as complete.
        case .changed: break
        case .received(let process, _, _, let values, let own):
            defer { replaced = nil }
            guard let replaced, replaced.disk == history.disks[process] else { return nil }
            let kept = own.intersection(replaced.keys).sorted()
            return kept.isEmpty
                ? dropped(by: process, on: replaced.disk, values)
                : "the first sync of process \(process) kept its own writes of \(kept)"
        default: replaced = nil
        }
        return nil
    }

    private func note(_ act: AppOperation) {
        acts[act.number] = act
        switch act.act {
        case .put(let field, _), .clear(let field):
            guard let part = PartID("d\(field)") else { return }
            last[act.disk, default: [:]][act.key.part(part)] = act
        case .write, .erase: last[act.disk] = last[act.disk]?.filter { $0.key.whole != act.key }
        default: break
        }
    }

    /// It does not know yet what other processes are doing.
    private func dropped(
        by process: Int, on disk: DiskReference, _ values: [Key: PropertyListValue]
    ) -> String? {
        guard let clocks else { return nil }
        for (field, act) in (last[disk] ?? [:]).sorted(by: { $0.key < $1.key }) {
            guard act.process == process, case .put = act.act,
                let number = AppOperation.number(in: values[field]),
                number != act.number, let other = acts[number], other.disk.device != disk.device,
                clocks.isLater(act, than: other)
            else { continue }
            return "the first sync of process \(process) dropped act \(act.number) on \(field) for "
                + "the earlier act \(number)"
        }
        return nil
    }
}
