// SPDX-License-Identifier: Apache-2.0

/// What a proposal writes, each part's new value or its deletion, and nothing twice.
struct PartChanges {
    private let family: Family
    private let policy: MergePolicy
    /// What the key itself is to have; nil: as it is.
    private(set) var base: Content?
    private(set) var parts: [PartID: Content] = [:]

    /// - Parameters:
    ///   - family: What the key has.
    ///   - resolver: The app's own rule, for ``MergePolicy/register``.
    init(
        _ proposal: Proposal, on family: Family, _ resolver: Resolver?, names: inout PartNames
    ) {
        self.family = family
        policy = proposal.policy
        guard let value = proposal.value else {
            removeAll()
            return
        }
        if !isOfOneKind { adopt(family.value(resolver)) }
        switch policy {
        case .counter:
            if let count = proposal.count {
                keep(count)
            } else {
                count(from: proposal.base, to: value, names)
            }
        case .maximum, .minimum: raise(to: value, &names)
        case .array: change(from: proposal.base?.elements ?? [], to: value.elements, &names)
        case .dictionary: change(from: proposal.base?.entries ?? [:], to: value.entries)
        case .register: replace(proposal.base, by: value, family.value(resolver), &names)
        }
    }

    // MARK: - What is there

    /// What the key would have.
    private var present: [PropertyListValue] {
        let kept = family.parts(of: policy).filter { parts[$0.id] == nil }.map(\.value)
        return kept + parts.values.compactMap(\.value)
    }

    private var isOfOneKind: Bool {
        family.parts.allSatisfy { $0.id.policy == policy }
            && family.base.map { policy.isEmptyContainer($0.value) } ?? true
    }

    private mutating func removeAll() {
        if family.base != nil { base = .deleted }
        for part in family.parts { parts[part.id] = .deleted }
    }

    /// What another version of the app wrote, without a policy or with another, becomes parts, of
    /// names that every device gives to the same.
    private mutating func adopt(_ value: PropertyListValue?) {
        removeAll()
        guard let value, policy.fits(value), let stamp = family.stamp else { return }
        let id = PartID("\(policy.rawValue)\(stamp.name)")!
        switch policy {
        case .counter:
            let total = Number(value) ?? .zero
            parts[id] = .value(Count(times: 1, total: total).value)
        case .maximum, .minimum, .register: parts[id] = .value(value)
        case .array:
            for (number, element) in value.elements.enumerated() {
                parts[PartNames.numbered(number, id)] = .value(element)
            }
        case .dictionary:
            for (key, value) in value.entries { put(value, under: key) }
        }
    }

    // MARK: - What is new

    private mutating func count(
        from old: PropertyListValue?, to new: PropertyListValue, _ names: PartNames
    ) {
        let own = names.own(policy)
        let counted =
            family.parts.first { $0.id == own }.flatMap { Count($0.value) }
            ?? Count(times: 0, total: .zero)
        let difference =
            (Number(new) ?? .zero) - (old.flatMap { Number($0) } ?? .zero)
        // A counter that was never counted is there all the same, as a zero.
        guard !difference.isZero || present.isEmpty else { return }
        let sum = Count(times: counted.times + 1, total: counted.total + difference)
        parts[own] = .value(sum.value)
    }

    private mutating func keep(_ count: KeptCount) {
        let known = family.parts.first { $0.id == count.part }.flatMap { Count($0.value) }
        if count.times > known?.times ?? 0 { parts[count.part] = .value(count.content.value) }
    }

    private mutating func raise(to value: PropertyListValue, _ names: inout PartNames) {
        guard let new = Magnitude(value) else { return }
        let isBeaten = present.compactMap(Magnitude.init).contains { old in
            old.class == new.class
                && !(policy == .maximum ? old.isLess(than: new) : new.isLess(than: old))
        }
        guard !isBeaten else { return }
        removeAll()
        parts[names.next(policy)] = .value(value)
    }

    private mutating func change(
        from old: [PropertyListValue], to new: [PropertyListValue], _ names: inout PartNames
    ) {
        makeContainer(.array([]))
        let (olds, news) = (Set(old), Set(new))
        for part in family.parts(of: policy)
        where olds.contains(part.value) && !news.contains(part.value) {
            parts[part.id] = .deleted
        }
        for (id, content) in parts {
            if let value = content.value, olds.contains(value), !news.contains(value) {
                parts[id] = family.parts.contains { $0.id == id } ? .deleted : nil
            }
        }
        var known = Set(present).union(olds)
        for element in new where known.insert(element).inserted {
            parts[names.next(policy)] = .value(element)
        }
    }

    private mutating func change(
        from old: [ExactString: PropertyListValue], to new: [ExactString: PropertyListValue]
    ) {
        makeContainer(.dictionary([:]))
        for (key, value) in new where old[key] != value { put(value, under: key) }
        for key in old.keys where new[key] == nil {
            guard let id = id(of: key) else { continue }
            if family.parts.contains(where: { $0.id == id }) {
                parts[id] = .deleted
            } else {
                parts[id] = nil
            }
        }
    }

    private mutating func put(_ value: PropertyListValue, under key: ExactString) {
        guard let id = id(of: key) else { return }
        let isThere = family.parts.contains { $0.id == id && $0.value == value }
        parts[id] = isThere ? nil : .value(value)
    }

    private func id(of key: ExactString) -> PartID? { PartID("\(policy.rawValue)\(key)") }

    /// What the app did not know stays beside the new value.
    private mutating func replace(
        _ old: PropertyListValue?, by value: PropertyListValue, _ visible: PropertyListValue?,
        _ names: inout PartNames
    ) {
        guard value != visible || !isOfOneKind else { return }
        if old == visible {
            removeAll()
        } else {
            for part in family.parts where part.value == old { parts[part.id] = .deleted }
        }
        parts[names.next(policy)] = .value(value)
    }

    /// So that it is empty, and not absent, when its last part is gone.
    private mutating func makeContainer(_ empty: PropertyListValue) {
        if family.base?.value != empty { base = .value(empty) }
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

extension Stamp {
    /// A text that no other stamp has.
    fileprivate var name: String {
        DeviceID.hexadecimal(timestamp.rawValue) + device.description
    }
}
