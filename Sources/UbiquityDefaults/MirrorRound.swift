// SPDX-License-Identifier: Apache-2.0

internal import Ubiquity
internal import UbiquityCore

/// One comparison of all keys of both sides, with the resulting actions. Runs on the mirror's
/// queue.
final class MirrorRound {
    private struct Item {
        var name: String
        var policy: ConflictPolicy
        var keyBaseline: KeyBaseline?
        var local: PropertyListValue?
        var remote: PropertyListValue?
        var step: MirrorStep
    }

    private let work: MirrorWorker
    private let before: DomainContent
    private var store: MirroredContent
    private let mode: MirrorMode
    private var items: [Item] = []
    /// The values to write to the preferences, and what they had at the beginning.
    private var writes: [(item: Item, value: PropertyListValue?)] = []
    private var keyBaselines: [(item: Item, value: PropertyListValue?)] = []
    /// The running count of each key that has one.
    private var counts: [String: ExternalCount] = [:]
    private(set) var known: [String: ValueFingerprint] = [:]
    /// Whether the preferences may hold what their file lacks: the round's own writes, or the app's
    /// that the store may not take yet, or refused.
    private(set) var mustFlush = false

    init(_ work: MirrorWorker, atStart: Bool) {
        self.work = work
        // The store first, so that the content of the preferences is never older than what was seen
        // of it.
        store = work.store.mirrored(atStart: atStart)
        before = work.domain.content()
        mode = store.store.mode(since: before.baseline)
        if mode == .compare { takeUpCounts(atStart: atStart) }
        if mode == .wait { mustFlush = true } else { collect() }
    }

    /// Repeats counts that may not have reached the store's disk before the process ended. Where
    /// the preferences are an older copy, another count begins.
    private func takeUpCounts(atStart: Bool) {
        counts = before.keyBaselines.compactMapValues(\.count)
        guard atStart, !counts.isEmpty else { return }
        for (name, count) in counts where work.keys.policy(of: name)?.isCounter ?? false {
            do { if try !work.store.keep(count, forKey: name) { counts[name] = nil } } catch {
                work.poster.report(.refused, name, "\(error)")
            }
        }
        store = work.store.mirrored(atStart: atStart)
    }

    // MARK: - Comparing

    private func collect() {
        var remote: [String: PropertyListValue] = [:]
        for (key, value) in store.values.sorted(by: { $0.key < $1.key }) {
            guard work.keys.policy(of: key.string) != nil else { continue }
            // Swift and Foundation consider keys equal that differ only in Unicode normalisation.
            if remote[key.string] == nil {
                remote[key.string] = value
            } else {
                work.poster.report(.taken, key.string, "the store has two keys that look like it")
            }
        }
        let names = Set(remote.keys).union(before.names).union(before.keyBaselines.keys)
        for name in names { look(at: name, remote: remote[name]) }
    }

    private func look(at name: String, remote: PropertyListValue?) {
        let keyBaseline = before.keyBaselines[name]
        guard let policy = work.keys.policy(of: name) else {
            // The key is no longer mirrored. If it is again, nothing will have been agreed on.
            if keyBaseline != nil { clearBaseline(name) }
            return
        }
        if MirrorClaims.shared.isTaken(name, from: work.claim) {
            return work.poster.report(.taken, name, "another mirror already has the key")
        }
        do {
            // With the app's own rule, the store knows the merged value only from now on.
            let remote = work.declare(policy, name) ? work.store.value(name) : remote
            let local = try before.value(name)
            add(
                Item(
                    name: name, policy: policy, keyBaseline: keyBaseline, local: local,
                    remote: remote,
                    step: .rest))
        } catch {
            work.poster.report(.value, name, error.description(forKey: name))
        }
    }

    private func add(_ item: Item) {
        var item = item
        item.step = MirrorRule.step(
            baseline: item.keyBaseline?.mark, local: item.local?.mark, remote: item.remote?.mark,
            mode: mode, merges: !item.policy.isLatest)
        known[item.name] = item.keyBaseline?.mark
        switch item.step {
        case .rest: return work.poster.resolve(item.name)
        case .rebase: keyBaselines.append((item, item.remote))
        case .take: plan(item, item.remote)
        case .write: break
        }
        items.append(item)
    }

    private func plan(_ item: Item, _ value: PropertyListValue?) {
        guard value?.fitsPreferences ?? true else {
            return work.poster.report(
                .value, item.name, "the store's value has a date that preferences cannot store")
        }
        writes.append((item, value))
    }

    private func clearBaseline(_ name: String) {
        work.domain.setBaseline(to: nil, forKey: name, keepsValue: false)
        mustFlush = true
    }

    // MARK: - Acting

    /// Proposes the changes of the preferences to the store.
    /// - Returns: Whether it accepted any.
    func apply() -> Bool {
        var hasApplied = false
        for item in items where item.step == .write && !isRefused(item) {
            guard apply(item) else { continue }
            hasApplied = true
            let value = work.store.value(item.name)
            if value?.mark == item.local?.mark {
                keyBaselines.append((item, value))
            } else {
                plan(item, value)
            }
        }
        return hasApplied
    }

    private func apply(_ item: Item) -> Bool {
        let base = MirrorRule.base(
            baseline: item.keyBaseline?.value, remote: item.remote, mode: mode)
        do {
            if let local = item.local, let count = counted(item, from: base, to: local) {
                try apply(count, item)
            } else {
                counts[item.name] = nil
                // The store notices and reports a value that does not fit the policy.
                try work.store.apply(item.local, over: base, forKey: item.name)
            }
            work.refused[item.name] = nil
            work.poster.resolve(item.name)
            return true
        } catch {
            work.refused[item.name] = refusal(of: item)
            mustFlush = true
            work.poster.report(.refused, item.name, "\(error)")
            return false
        }
    }

    /// The count including this change; nil if the key is not a counter or the value not a number.
    private func counted(
        _ item: Item, from base: PropertyListValue?, to local: PropertyListValue
    ) -> ExternalCount? {
        guard item.policy.isCounter else { return nil }
        let next = counts[item.name]?.adding(from: base, to: local)
        if let next, !work.store.hasCounted(moreThan: next, forKey: item.name) { return next }
        return ExternalCount(run: .random(in: 0 ... .max)).adding(from: base, to: local)
    }

    /// Writes to the preferences before the store, so that a loss in between is repaired by writing
    /// again.
    private func apply(_ count: ExternalCount, _ item: Item) throws {
        let old = item.keyBaseline
        work.domain.setBaseline(to: item.local, forKey: item.name, keepsValue: true, count: count)
        work.domain.flush()
        do { _ = try work.store.keep(count, forKey: item.name) } catch {
            work.domain.setBaseline(
                to: old?.value, forKey: item.name, keepsValue: true, count: old?.count)
            throw error
        }
        counts[item.name] = count
    }

    private func refusal(of item: Item) -> MirrorWorker.Refusal {
        MirrorWorker.Refusal(mark: item.local?.mark, usage: store.usage, limits: store.limits)
    }

    private func isRefused(_ item: Item) -> Bool {
        work.refused[item.name].map { $0 == refusal(of: item) } ?? false
    }

    /// Writes the store's values to the preferences where those are unchanged.
    /// - Returns: The written keys, and whether the app has changed others meanwhile.
    func take() -> (keys: [String], hasMissed: Bool) {
        guard !writes.isEmpty else { return ([], false) }
        let now = work.domain.content()
        var taken: [String] = []
        for (item, value) in writes {
            let local = try? now.value(item.name)
            guard local?.mark == item.local?.mark else { continue }
            work.domain.write(value, over: local, forKey: item.name)
            keyBaselines.append((item, value))
            taken.append(item.name)
            reportIfDiscarded(item)
        }
        return (taken.sorted(), taken.count < writes.count)
    }

    private func reportIfDiscarded(_ item: Item) {
        guard mode == .replace, let local = item.local, local.mark != item.keyBaseline?.mark else {
            return work.poster.resolve(item.name)
        }
        work.poster.report(
            .discarded, item.name,
            "a change was waiting when the device switched to another account, which must not get "
                + "it")
    }

    /// Stores the values that both now have in common.
    func saveBaselines() {
        for (item, value) in keyBaselines {
            work.domain.setBaseline(
                to: value, forKey: item.name, keepsValue: !item.policy.isLatest,
                count: counts[item.name])
            known[item.name] = value?.mark
        }
        if mode != .wait, before.baseline != store.store.baseline {
            work.domain.setBaseline(to: store.store.baseline)
            mustFlush = true
        }
        if !keyBaselines.isEmpty || !writes.isEmpty { mustFlush = true }
    }
}
