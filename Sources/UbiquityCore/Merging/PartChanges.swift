// SPDX-License-Identifier: Apache-2.0

/// The writes that an operation makes: the new value or the deletion of each part, each at most
/// once.
///
/// The key's own plain value is never turned into parts. It stays beside them, where only other
/// plain writes replace it, so two devices that continue from it do not take it twice.
struct PartChanges {
    private let key: Key
    private let state: MergeState
    private let policy: MergePolicy
    private let shown: [PropertyListValue]?
    /// The new content of the key itself; nil if it is unchanged.
    private(set) var base: Content?
    private(set) var parts: [PartID: Content] = [:]

    /// The most parts of a maximum or minimum that a raise leaves, including its own. Changes to
    /// parts dropped long ago can no longer be told from what was seen.
    static let reachedPartsMax = 16

    /// - Parameters:
    ///   - state: The current state of the key.
    ///   - visible: The value that the app sees.
    ///   - shown: The values that it was made of; nil for all. Others came later, and wait for the
    ///     app's own rule.
    init(
        _ operation: MergeOperation, into key: Key, of state: MergeState,
        visible: PropertyListValue?, shown: [PropertyListValue]? = nil, names: inout PartNames
    ) {
        self.key = key
        self.state = state
        self.shown = shown
        policy = operation.policy
        guard let value = operation.value else {
            let isSeen = { [self] in $0 == visible || isShown($0) }
            if let plain, isSeen(plain) { base = .deleted }
            parts = state.removal
            for part in state.parts where !isSeen(part.value) { parts[part.id] = nil }
            return
        }
        takeOver(visible)
        switch policy {
        case .counter:
            if let count = operation.count {
                keep(count)
            } else {
                count(from: operation.base, to: value, isNew: visible == nil, &names)
            }
        case .maximum, .minimum: raise(to: value, visible, &names)
        case .array: change(from: operation.base?.elements ?? [], to: value.elements, &names)
        case .dictionary:
            change(from: operation.base?.entries ?? [:], to: value.entries, &names)
        case .register: replace(operation.base, by: value, visible, &names)
        }
    }

    // MARK: - Current state

    /// The future value of the key itself.
    private var plain: PropertyListValue? { base.map { $0.value } ?? state.base?.value }

    /// The parts of this kind that remain.
    private var kept: [MergeState.Part] {
        state.parts(of: policy).filter { parts[$0.id] == nil }
    }

    private mutating func remove(_ part: MergeState.Part) {
        let (id, content) = state.removal(of: part)
        parts[id] = content
    }

    /// Replaces what another version of the app wrote, with another policy or of another kind, by a
    /// plain value, or by nothing if this policy cannot use it.
    private mutating func takeOver(_ visible: PropertyListValue?) {
        if let last = state.parts.last, last.id.policy != policy {
            base = visible.flatMap { policy.fits($0) ? .value($0) : nil } ?? .deleted
            parts = state.removal
            return
        }
        if let plain, !policy.fits(plain) { base = .deleted }
        for part in state.parts where part.id.policy != policy { remove(part) }
    }

    // MARK: - New state

    private mutating func count(
        from old: PropertyListValue?, to new: PropertyListValue, isNew: Bool,
        _ names: inout PartNames
    ) {
        let difference =
            (Number(new) ?? .zero) - (old.flatMap { Number($0) } ?? .zero)
        // A counter that was set but never counted must exist, as zero.
        guard !difference.isZero || isNew else { return }
        let own = names.continued(policy, under: key, in: state)
        let counted = own.flatMap { Count($0.content) } ?? Count(times: 0, total: .zero)
        let id = own?.id ?? names.begin(policy, under: key)
        let sum = Count(times: counted.times + 1, total: counted.total + difference)
        parts[id] = .value(sum.value)
        names.leave(sum.value, in: id, of: key)
    }

    private mutating func keep(_ count: ExternalCount) {
        let known = state.content(of: count.part).flatMap { Count($0) }
        if count.times > known?.times ?? 0 { parts[count.part] = .value(count.content.value) }
    }

    private mutating func raise(
        to value: PropertyListValue, _ visible: PropertyListValue?, _ names: inout PartNames
    ) {
        guard let new = ComparableValue(value) else { return }
        let present = ([plain] + kept.map { $0.value }).compactMap {
            $0.flatMap { ComparableValue($0) }
        }
        let isBeaten = present.contains { old in
            old.class == new.class && !policy.prefers(new, to: old)
        }
        guard !isBeaten else { return }
        // Replaces values of another class.
        if let plain, ComparableValue(plain)?.class != new.class { base = .deleted }
        for part in kept where ComparableValue(part.value)?.class != new.class { remove(part) }
        let id = state.isSealed ? names.next(policy) : raisedPart(new.class, &names)
        parts[id] = .value(value)
        if !state.isSealed { names.leave(value, in: id, of: key) }
        // All other parts are smaller. Of sealed ones, the server cannot say which.
        let others = state.all.filter { $0.id.policy == policy && $0.id != id }
        let kept = state.isSealed ? 0 : Self.reachedPartsMax - 1
        for part in others.dropLast(kept) { parts[part.id] = .deleted }
    }

    /// The part that this run raises in place.
    private func raisedPart(_ class: ComparableValue.Class, _ names: inout PartNames) -> PartID {
        let own = names.continued(policy, under: key, in: state).flatMap { own in
            ComparableValue(own.content)?.class == `class` ? own.id : nil
        }
        return own ?? names.begin(policy, under: key)
    }

    private mutating func change(
        from old: [PropertyListValue], to new: [PropertyListValue], _ names: inout PartNames
    ) {
        let removed = Set(old).subtracting(new)
        for part in kept where removed.contains(part.value) { remove(part) }
        makeContainer(.array([]), where: new.isEmpty || !removed.isEmpty)
        if let plain = plain?.elements, plain.contains(where: removed.contains) {
            base = .value(.array(plain.filter { !removed.contains($0) }))
        }
        var known = Set(kept.map { $0.value }).union(plain?.elements ?? []).union(old)
        for element in new where known.insert(element).inserted {
            parts[names.next(policy)] = .value(element)
        }
    }

    private mutating func change(
        from old: [ExactString: PropertyListValue], to new: [ExactString: PropertyListValue],
        _ names: inout PartNames
    ) {
        let removed = Set(old.keys).subtracting(new.keys)
        for part in kept where part.entry.map({ removed.contains($0.key) }) ?? false {
            remove(part)
        }
        makeContainer(.dictionary([:]), where: new.isEmpty || !removed.isEmpty)
        if let plain = plain?.entries, plain.keys.contains(where: removed.contains) {
            base = .value(.dictionary(plain.filter { !removed.contains($0.key) }))
        }
        if state.isSealed { return hide(new.filter { old[$0.key] != $0.value }, &names) }
        for (key, value) in new where old[key] != value {
            guard let id = PartID("\(policy.rawValue)\(key)") else { continue }
            if state.content(of: id) != value || parts[id] != nil { parts[id] = .value(value) }
        }
    }

    /// Writes entries of which the server learns no inner key: each into the part that has it, or a
    /// new one. Two devices may have written one key at once; then its other parts go.
    private mutating func hide(
        _ entries: [ExactString: PropertyListValue], _ names: inout PartNames
    ) {
        var present: [ExactString: PartID] = [:]
        for part in kept {
            guard let key = part.entry?.key, entries[key] != nil else { continue }
            if let earlier = present[key] { parts[earlier] = .deleted }
            present[key] = part.id
        }
        for (key, value) in entries.inOrder(by: { $0.key < $1.key }) {
            var id = present[key]
            if let shown = id, !shown.isHiddenEntry {
                parts[shown] = .deleted
                id = nil
            }
            let content = MergeState.hidden(key, value)
            if let id, state.content(of: id) == content { continue }
            parts[id ?? names.nextHiddenEntry()] = .value(content)
        }
    }

    /// Values that the app did not know stay beside the new value.
    private mutating func replace(
        _ old: PropertyListValue?, by value: PropertyListValue, _ visible: PropertyListValue?,
        _ names: inout PartNames
    ) {
        guard value != visible else { return }
        for part in kept where part.value == old || old == visible && isShown(part.value) {
            remove(part)
        }
        if let plain, plain == old || old == visible && isShown(plain) {
            base = .deleted
        }
        parts[names.next(policy)] = .value(value)
    }

    private func isShown(_ value: PropertyListValue) -> Bool { shown?.contains(value) ?? true }

    /// Writes an empty container, so that the key is empty rather than absent when its last part is
    /// gone.
    private mutating func makeContainer(_ empty: PropertyListValue, where isNeeded: Bool) {
        if isNeeded, plain == nil { base = .value(empty) }
    }
}

extension PropertyListValue {
    fileprivate var elements: [PropertyListValue] {
        if case .array(let elements) = self { elements } else { [] }
    }

    fileprivate var entries: [ExactString: PropertyListValue] {
        if case .dictionary(let entries) = self { entries } else { [:] }
    }
}

/// Makes names for new parts that no other run of any app ever uses.
struct PartNames: Sendable {
    /// A part that this run changes in place, and its last content.
    private struct Own: Sendable {
        var id: PartID
        var content: PropertyListValue
    }

    /// The name of this run.
    private let run: String
    private var count = 0
    /// By the names of the keys.
    private var own: [ExactString: Own] = [:]

    /// - Parameter run: A random number.
    init(run: UInt64) { self.run = run.hexadecimal }

    /// The part that this run continues under a key, and its content; nil if it must begin a new
    /// one.
    ///
    /// A run only continues a part that is as it left it. A removed part stays removed, and a
    /// refused one may come back with an older copy.
    func continued(
        _ policy: MergePolicy, under key: Key, in state: MergeState
    ) -> (id: PartID, content: PropertyListValue)? {
        guard let own = own[key.name], own.id.policy == policy, !state.isRemoved(own.id),
            state.content(of: own.id) == own.content
        else { return nil }
        return (own.id, own.content)
    }

    /// The name for a part that this run is going to change in place.
    mutating func begin(_ policy: MergePolicy, under key: Key) -> PartID {
        own[key.name] == nil ? name(policy) : next(policy)
    }

    /// Takes note of what this run leaves in a part that it changes in place.
    mutating func leave(_ content: PropertyListValue, in id: PartID, of key: Key) {
        own[key.name] = Own(id: id, content: content)
    }

    /// A new name that sorts after those before.
    mutating func next(_ policy: MergePolicy) -> PartID { next(policy.rawValue) }

    /// A new name for a dictionary's entry, which says nothing of its inner key.
    mutating func nextHiddenEntry() -> PartID { next(PartID.hiddenEntry) }

    private mutating func next(_ kind: Unicode.Scalar) -> PartID {
        count += 1
        // Counts up to 36 to the seventh power.
        let digits = String(count, radix: 36)
        let zeros = String(repeating: "0", count: max(0, 7 - digits.utf8.count))
        return PartID("\(kind)\(run).\(zeros)\(digits)")!
    }

    func name(_ policy: MergePolicy) -> PartID { PartID("\(policy.rawValue)\(run)")! }
}
