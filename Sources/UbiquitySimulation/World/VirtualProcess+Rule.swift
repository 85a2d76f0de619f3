// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// An app's knowledge of a key with its own rule, found out without the engine's own notes.
struct RuleView {
    /// The records that the visible value was made of.
    var shown: [Key: PropertyListValue]
    /// The values that the rule has merged last.
    var merged: [ConcurrentValue]
    /// The records now.
    var records: [Key: PropertyListValue]
    /// The events since the rule was last called for all values.
    var causes: [Observation.Cause] = []
    /// Whether they have changed the records.
    var hasNews = false

    init(_ view: MergeMove.View, isConflict: Bool, merged: [ConcurrentValue]) {
        records = view.records
        self.merged = merged
        shown = isConflict ? records.filter { $0.value == view.value } : records
    }
}

/// Calls the app's own rule as the library does: by the app's thread after a write, and by the
/// queue before anything else. It takes time, in which others go on.
extension VirtualProcess {
    func declareRule() {
        world.declareRule(in: &driver.engine)
        for (key, policy) in world.mergedKeys where policy == .register { turn(key) }
    }

    /// Calls the rule for everything that waits for it, and then continues.
    func decideConflicts(then next: @escaping () -> Void) {
        guard let conflict = driver.engine.takeConflict() else { return next() }
        world.after(decidingMilliseconds) { [self] in
            whenRunning { [self] in
                decide(conflict)
                decideConflicts(then: next)
            }
        }
    }

    private var decidingMilliseconds: Int64 {
        if world.isPeaceful || world.chance.coin() { return world.chance.int64(0...20) }
        return min(world.chance.interval(mean: world.scenario.workInterval), 60_000)
    }

    /// An app's write returns when its rule has been called.
    func finishWrite() {
        noteRecords(nil)
        schedule()
        if engine.hasConflict { decideConflicts { [self] in schedule() } }
    }

    private func decide(_ conflict: Conflict) {
        let key = conflict.key
        let before = engine[key]
        let isCurrent = values(inConflictOn: key) == conflict.values
        driver.engine.decide(conflict, as: conflict.result)
        guard isCurrent, let view = rules[key] else { return }
        rules[key]?.merged = conflict.values
        noteRecords(nil)
        guard engine[key] != before else { return }
        isChanged = true
        for cause in view.causes { world.journal.note(.changed(process: number, [key], cause)) }
        if !view.hasNews { world.journal.note(.decided(process: number, key, engine[key])) }
    }

    // MARK: - What the app knows

    /// The app's view of a key: without the records that its rule has not seen yet.
    func view(of key: Key) -> MergeMove.View {
        var view = engine.view(of: key)
        if let shown = rules[key]?.shown {
            view.records = view.records.filter { shown[$0.key] == $0.value }
        }
        return view
    }

    /// The store shows the values of another file.
    /// - Parameter isOther: Whether it belongs to another account.
    func turnRules(isOther: Bool) {
        if isOther { for key in rules.keys { turn(key) } }
        noteRecords(isOther ? .account : .otherProcess)
    }

    private func turn(_ key: Key) {
        let isConflict = !values(inConflictOn: key).isEmpty
        rules[key] = RuleView(
            engine.view(of: key), isConflict: isConflict, merged: rules[key]?.merged ?? [])
    }

    /// Takes note of the records after something has happened; nil for what the app does itself.
    func noteRecords(_ cause: Observation.Cause?) {
        for (key, view) in rules {
            let records = engine.view(of: key).records
            let values = values(inConflictOn: key)
            guard !values.isEmpty, values != view.merged else {
                rules[key] = RuleView(
                    engine.view(of: key), isConflict: false, merged: view.merged)
                continue
            }
            if let cause {
                rules[key]?.causes.append(cause)
                if records != view.records { rules[key]?.hasNews = true }
            }
            rules[key]?.records = records
            // A key without a value shows one of them until the rule has been called.
            if view.shown.isEmpty {
                rules[key]?.shown = records.filter { $0.value == engine[key] }
            }
        }
    }

    /// All values that the rule would have to merge now.
    private func values(inConflictOn key: Key) -> [ConcurrentValue] {
        var engine = engine
        // Declared anew, it has merged nothing.
        engine.setPolicy(.register, resolver: AppOperation.resolver, for: key)
        while let conflict = engine.takeConflict() {
            if conflict.key == key { return conflict.values }
        }
        return []
    }
}
