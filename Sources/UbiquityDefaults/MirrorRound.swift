// SPDX-License-Identifier: Apache-2.0

internal import Ubiquity
internal import UbiquityCore

/// One comparison of all keys of both sides, with the resulting actions. Runs on the mirror's
/// queue.
final class MirrorRound {
    private struct Item {
        var name: String
        var policy: ConflictPolicy
        var agreement: Agreement?
        var local: PropertyListValue?
        var remote: PropertyListValue?
        var step: MirrorStep
    }

    private let work: MirrorWork
    private let before: DomainContent
    private var store: MirroredContent
    private let course: MirrorCourse
    private var items: [Item] = []
    /// The values to write to the preferences, and what they had at the beginning.
    private var writes: [(item: Item, value: PropertyListValue?)] = []
    private var agreements: [(item: Item, value: PropertyListValue?)] = []
    /// The running count of each key that has one.
    private var counts: [String: KeptCount] = [:]
    private(set) var known: [String: ValueFingerprint] = [:]
    private(set) var hasWritten = false

    init(_ work: MirrorWork, atStart: Bool) {
        self.work = work
        // The store first, so that the content of the preferences is never older than what was seen
        // of it.
        store = work.store.mirrored(atStart: atStart)
        before = work.domain.content()
        course = store.store.course(since: before.pact)
        if course == .compare { takeUpCounts(atStart: atStart) }
        if course != .wait { collect() }
    }

    /// Repeats counts that may not have reached the store's disk before the process ended. Where
    /// the preferences are an older copy, another count begins.
    private func takeUpCounts(atStart: Bool) {
        counts = before.agreements.compactMapValues(\.count)
        guard atStart, !counts.isEmpty else { return }
        for (name, count) in counts where work.keys.policy(of: name)?.isCounter ?? false {
            do { if try !work.store.keep(count, forKey: name) { counts[name] = nil } } catch {
                work.audience.report(.refused, name, "\(error)")
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
                work.audience.report(.taken, key.string, "the store has two keys that look like it")
            }
        }
        let names = Set(remote.keys).union(before.names).union(before.agreements.keys)
        for name in names { look(at: name, remote: remote[name]) }
    }

    private func look(at name: String, remote: PropertyListValue?) {
        let agreement = before.agreements[name]
        guard let policy = work.keys.policy(of: name) else {
            // The key is no longer mirrored. If it is again, nothing will have been agreed on.
            if agreement != nil { forget(name) }
            return
        }
        if MirrorClaims.shared.isTaken(name, from: work.claim) {
            return work.audience.report(.taken, name, "another mirror has the key")
        }
        do {
            // With the app's own rule, the store knows the merged value only from now on.
            let remote = work.declare(policy, name) ? work.store.value(name) : remote
            let local = try before.value(name)
            add(
                Item(
                    name: name, policy: policy, agreement: agreement, local: local, remote: remote,
                    step: .rest))
        } catch {
            work.audience.report(.value, name, error.description(forKey: name))
        }
    }

    private func add(_ item: Item) {
        var item = item
        item.step = MirrorRule.step(
            agreed: item.agreement?.mark, local: item.local?.mark, remote: item.remote?.mark,
            course: course, merges: !item.policy.isLatest)
        known[item.name] = item.agreement?.mark
        switch item.step {
        case .rest: return work.audience.settle(item.name)
        case .agree: agreements.append((item, item.remote))
        case .take: plan(item, item.remote)
        case .propose: break
        }
        items.append(item)
    }

    private func plan(_ item: Item, _ value: PropertyListValue?) {
        guard value?.fitsPreferences ?? true else {
            return work.audience.report(
                .value, item.name, "the store's value has a date that preferences cannot have")
        }
        writes.append((item, value))
    }

    private func forget(_ name: String) {
        work.domain.agree(on: nil, forKey: name, keepsValue: false)
        hasWritten = true
    }

    // MARK: - Acting

    /// Proposes the changes of the preferences to the store.
    /// - Returns: Whether it accepted any.
    func propose() -> Bool {
        var hasProposed = false
        for item in items where item.step == .propose && !isRefused(item) {
            guard propose(item) else { continue }
            hasProposed = true
            let value = work.store.value(item.name)
            if value?.mark == item.local?.mark {
                agreements.append((item, value))
            } else {
                plan(item, value)
            }
        }
        return hasProposed
    }

    private func propose(_ item: Item) -> Bool {
        let base = MirrorRule.base(
            agreed: item.agreement?.value, remote: item.remote, course: course)
        do {
            if let local = item.local, let count = counted(item, from: base, to: local) {
                try propose(count, item)
            } else {
                counts[item.name] = nil
                // The store notices and reports a value that does not fit the policy.
                try work.store.propose(item.local, over: base, forKey: item.name)
            }
            work.refused[item.name] = nil
            work.audience.settle(item.name)
            return true
        } catch {
            work.refused[item.name] = refusal(of: item)
            work.audience.report(.refused, item.name, "\(error)")
            return false
        }
    }

    /// The count including this change; nil if the key is not a counter or the value not a number.
    private func counted(
        _ item: Item, from base: PropertyListValue?, to local: PropertyListValue
    ) -> KeptCount? {
        guard item.policy.isCounter else { return nil }
        let next = counts[item.name]?.adding(from: base, to: local)
        if let next, !work.store.hasCounted(moreThan: next, forKey: item.name) { return next }
        return KeptCount(run: .random(in: 0 ... .max)).adding(from: base, to: local)
    }

    /// Writes to the preferences before the store, so that a loss in between is repaired by writing
    /// again.
    private func propose(_ count: KeptCount, _ item: Item) throws {
        let old = item.agreement
        work.domain.agree(on: item.local, forKey: item.name, keepsValue: true, count: count)
        work.domain.flush()
        do { _ = try work.store.keep(count, forKey: item.name) } catch {
            work.domain.agree(
                on: old?.value, forKey: item.name, keepsValue: true, count: old?.count)
            throw error
        }
        counts[item.name] = count
    }

    private func refusal(of item: Item) -> MirrorWork.Refusal {
        MirrorWork.Refusal(mark: item.local?.mark, usage: store.usage, limits: store.limits)
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
            agreements.append((item, value))
            taken.append(item.name)
            tellIfDiscarded(item)
        }
        return (taken.sorted(), taken.count < writes.count)
    }

    private func tellIfDiscarded(_ item: Item) {
        guard course == .replace, let local = item.local, local.mark != item.agreement?.mark else {
            return work.audience.settle(item.name)
        }
        work.audience.report(
            .discarded, item.name,
            "a change waited when the device came to another account, which must not get it")
    }

    /// Stores the values that both now have in common.
    func agree() {
        for (item, value) in agreements {
            work.domain.agree(
                on: value, forKey: item.name, keepsValue: !item.policy.isLatest,
                count: counts[item.name])
            known[item.name] = value?.mark
        }
        if course != .wait, before.pact != store.store.pact {
            work.domain.agree(with: store.store.pact)
            hasWritten = true
        }
        if !agreements.isEmpty || !writes.isEmpty { hasWritten = true }
    }
}
