// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

extension MergeChecker {
    /// The final state of a key, and everything done to it.
    struct Expectation {
        struct Made {
            /// All acts that may have reached this store.
            let acts: [AppOperation]
            /// The acts that must have.
            let sure: [AppOperation]
            /// The acts that may have been undone, and those that surely were.
            let mayBeGone: Set<Int>
            let mustBeGone: Set<Int>

            /// - Parameter undone: For each removal or plain write, the acts that its author had
            ///   seen.
            ///   - hidden: Others that may have been undone.
            init(
                acts: [AppOperation], sure: [AppOperation], undone: [Int: Set<Int>],
                hidden: Set<Int> = []
            ) {
                func gone(by acts: [AppOperation]) -> Set<Int> {
                    acts.reduce(into: []) { $0.formUnion(undone[$1.number] ?? []) }
                }
                (self.acts, self.sure) = (acts, sure)
                (mayBeGone, mustBeGone) = (gone(by: acts).union(hidden), gone(by: sure))
            }
        }

        let policy: MergePolicy
        let shown: PropertyListValue?
        /// The server's records.
        let records: [Key: PropertyListValue]
        /// The increments that the server has folded of it, with the acts in them.
        let folded: [(increment: FoldedIncrement, numbers: [Int])]
        /// Acts of runs that were folded, or removed after folding, by a server that went back to
        /// before that: they may be in their earlier state.
        let unsettled: Set<Int>
        let made: Made
        let hasGoneBack: Bool
        let clocks: ClockLedger?
        /// See ``MergeChecker/isSealed``.
        let isSealed: Bool

        /// - Parameter numbers: The acts in a record.
        func complaint(_ numbers: (Key, PropertyListValue) -> [Int]) -> String? {
            let plain = records.first { !$0.key.isPart }?.value
            if let complaint = plainComplaint(plain) { return complaint }
            return switch policy {
            case .counter: counterComplaint(plain, numbers)
            case .maximum, .minimum: greatestComplaint(plain)
            case .array: elementsComplaint()
            case .dictionary: fieldsComplaint()
            case .register: concurrentComplaint(plain)
            }
        }

        private var mustBeGone: Set<Int> { made.mustBeGone }
        private var mayBeGone: Set<Int> { made.mayBeGone }

        /// A change of one element of a plain value rewrites the rest, which another author may
        /// have undone unseen. See decision 0017.
        private var isRewritten: Bool {
            made.acts.contains { $0.seenRecords == nil && $0.changesPlain(policy) }
        }

        /// Present acts must have been made and not be undone. Acts that were surely made and that
        /// nobody can have undone must be present.
        private func complaint(
            about present: Set<Int>, besides gone: Set<Int> = [], pardons: Bool = false,
            of isMeant: (AppOperation) -> Bool
        ) -> String? {
            let kind = made.acts.filter(isMeant)
            if let foreign = present.subtracting(kind.map(\.number)).min() {
                return "act \(foreign) is there, and was never made"
            }
            if !pardons, let risen = present.intersection(mustBeGone).subtracting(unsettled).min() {
                return "act \(risen) is there, but was undone by a device that had seen it"
            }
            let lost = Set(made.sure.filter(isMeant).map(\.number))
                .subtracting(present).subtracting(mayBeGone).subtracting(gone)
            return lost.min().map { "act \($0), acknowledged, is gone, and nobody undid it" }
        }

        /// Checks the key's own value: it is that of the last write, or at least not of one that
        /// another author had seen and replaced.
        private func plainComplaint(_ value: PropertyListValue?) -> String? {
            let number = AppOperation.number(inPlain: value, policy)
            if let number {
                guard made.acts.contains(where: { $0.number == number && $0.isPlainWrite }) else {
                    return "nobody wrote \(number) without a policy"
                }
                if !hasGoneBack, !isRewritten, mustBeGone.contains(number) {
                    return "the value of act \(number) is there, which was undone"
                }
            }
            let lost = made.sure.first { act in
                act.isPlainWrite && act.number != number && !mayBeGone.contains(act.number)
                    && !made.acts.contains { $0.number != act.number && $0.changesPlain(policy) }
            }
            return lost.map { "the value of act \($0.number) is gone, and nobody wrote another" }
        }

        // MARK: - Each policy

        /// The value is the sum of the key's own value and all counts that are not undone.
        private func counterComplaint(
            _ plain: PropertyListValue?, _ numbers: (Key, PropertyListValue) -> [Int]
        ) -> String? {
            var present: Set<Int> = []
            let mark = records.first { $0.key.part == PartID("c-+") }?.value
            let undoneFold = AppOperation.count(in: mark)?.times ?? 0
            for (increment, numbers) in folded
            where !increment.isRemoved && increment.mark.rawValue > undoneFold {
                present.formUnion(numbers)
            }
            for (key, value) in records where key.isPart && !key.isUndoing && !key.isOfFold {
                let counted = Set(numbers(key, value))
                let undone = records[key.undoing].map { Set(numbers(key, $0)) } ?? []
                if counted.isEmpty { return "the part \(key) was never counted" }
                present.formUnion(counted.subtracting(undone))
            }
            if let complaint = complaint(about: present, of: { $0.counted != nil }) {
                return complaint
            }
            let counts = made.acts.filter { present.contains($0.number) }.compactMap(\.counted)
            let sum = (plain?.amount ?? 0) + counts.reduce(0, +)
            let isNothing = plain == nil && counts.isEmpty
            guard isNothing ? shown == nil : shown?.amount == sum else {
                return "\(isNothing ? "nothing" : "\(sum)") is left of \(present.sorted())"
            }
            return nil
        }

        private func greatestComplaint(_ plain: PropertyListValue?) -> String? {
            var sure = Set(made.sure.map(\.number)).subtracting(mayBeGone)
            var offers: [Int64: Int] = [:]
            var best = AppOperation.integer(in: plain)
            for act in made.acts {
                guard let offer = act.offer else { continue }
                offers[offer] = act.number
                guard sure.remove(act.number) != nil else { continue }
                if best.map({ policy.isBetter(offer, than: $0) }) ?? true { best = offer }
            }
            guard let value = AppOperation.integer(in: shown) else {
                return best.map { "\($0) was offered, and nobody undid it" }
            }
            if let best, policy.isBetter(best, than: value) {
                return "\(best) was offered, and nobody undid it"
            }
            if value == AppOperation.integer(in: plain) { return nil }
            guard let act = offers[value] else { return "nobody ever offered it" }
            // A removal in a sealed account deletes the parts that its author saw. A copy may have got
            // another name since.
            if isSealed, hasGoneBack { return nil }
            return mustBeGone.contains(act) ? "act \(act) offered it, and it was undone" : nil
        }

        private func elementsComplaint() -> String? {
            guard case .array(let elements) = shown ?? .array([]) else {
                return "it is not an array"
            }
            let present = Set(elements.compactMap { AppOperation.number(in: $0) })
            guard present.count == elements.count else { return "an element is there twice" }
            let added = present.filter { number in
                made.acts.contains { $0.number == number && $0.act == .add }
            }
            if let foreign = present.subtracting(added).first(where: { number in
                !made.acts.contains { $0.number == number && $0.isPlainWrite }
            }) {
                return "nobody added \(foreign)"
            }
            let removed = Set(made.acts.compactMap(\.removed))
            let surely = Set(made.sure.compactMap(\.removed))
            // An older copy of the server may get it again from a device that has not heard.
            if !hasGoneBack, let element = added.intersection(surely).min() {
                return "the element of act \(element) was removed, and it is there"
            }
            return complaint(about: added, besides: removed, pardons: hasGoneBack) {
                $0.act == .add
            }
        }

        private func fieldsComplaint() -> String? {
            guard case .dictionary(let entries) = shown ?? .dictionary([:]) else {
                return "it is not a dictionary"
            }
            for field in Set(made.acts.compactMap(\.field)).sorted() {
                let present = AppOperation.number(in: entries[ExactString(field)])
                let acts = made.acts.filter { $0.field == field }
                if let present,
                    !made.acts.contains(where: {
                        $0.number == present
                            && ($0.field == field && !$0.isClearing || $0.isPlainWrite)
                    })
                {
                    return "nobody put \(present) into \(field)"
                }
                let isPlain = made.acts.contains { $0.number == present && $0.isPlainWrite }
                let mayComeBack = hasGoneBack || isPlain && isRewritten
                if let present, !mayComeBack, mustBeGone.contains(present) {
                    return "the field \(field) has \(present), which was undone"
                }
                let mayBeCleared = acts.contains(where: \.isClearing)
                for act in made.sure where act.field == field && !act.isClearing {
                    guard let present else {
                        if mayBeCleared || mayBeGone.contains(act.number) { continue }
                        // Whoever undid its replacement has undone it too.
                        if acts.contains(where: { mayBeGone.contains($0.number) }) { continue }
                        return "the field \(field), where act \(act.number) put something, is gone"
                    }
                    if !mayComeBack, replaced(present, by: act) {
                        return "the field \(field) has \(present), which act \(act.number) replaced"
                    }
                    // Who clears an entry of a sealed account clears what he has seen of it.
                    let mayShowEarlier = mayComeBack || isSealed && mayBeCleared
                    if !mayShowEarlier, !mayBeGone.contains(act.number),
                        let winner = acts.first(where: { $0.number == present }),
                        clocks?.isLater(act, than: winner) ?? false
                    {
                        return "the field \(field) has \(present), and act \(act.number) was later"
                    }
                }
            }
            return nil
        }

        /// Whether the author of a put had seen another one there, or its replacement.
        private func replaced(_ number: Int, by act: AppOperation) -> Bool {
            var seen = act.over
            while let over = seen {
                if over == number { return true }
                seen = made.acts.first { $0.number == over }?.over
            }
            return false
        }

        private func concurrentComplaint(_ plain: PropertyListValue?) -> String? {
            let present = Set(
                records.filter(\.key.isPart).compactMap { AppOperation.number(in: $0.value) })
            if let complaint = complaint(
                about: present, besides: Set(made.acts.flatMap(\.replaced)), pardons: hasGoneBack,
                of: { if case .replace = $0.act { true } else { false } })
            {
                return complaint
            }
            let replaced = Set(made.sure.flatMap(\.replaced))
            if !hasGoneBack, let risen = present.intersection(replaced).min() {
                return "the value of act \(risen) is there, which was replaced"
            }
            let expected = records.values.max()
            return shown == expected
                ? nil : "\(expected.map { "\($0)" } ?? "nothing") is what the app's own rule makes"
        }
    }
}

extension MergePolicy {
    func isBetter(_ a: Int64, than b: Int64) -> Bool { self == .minimum ? a < b : a > b }
}

extension Key {
    /// Whether the part says how far another one was undone.
    fileprivate var isUndoing: Bool { part?.text.string.hasPrefix("c-") ?? false }

    fileprivate var undoing: Key {
        part(PartID("c-\(part?.text.string.dropFirst() ?? "")")!)
    }
}

extension AppOperation {
    fileprivate var counted: Double? {
        if case .count(_, _, let amount) = act { amount } else { nil }
    }
    /// (Inlined, it makes the optimiser of Swift 6.3.1 crash.)
    @inline(never)
    var offer: Int64? { if case .offer(_, let offer) = act { offer } else { nil } }
    var removed: Int? { if case .remove(let number) = act { number } else { nil } }
    fileprivate var replaced: [Int] { if case .replace(let all) = act { all } else { [] } }
    fileprivate var over: Int? { if case .put(_, let over) = act { over } else { nil } }
    fileprivate var isClearing: Bool { if case .clear = act { true } else { false } }
    fileprivate var isPlainWrite: Bool { if case .write = act { true } else { false } }
    fileprivate var field: String? {
        switch act {
        case .put(let field, _), .clear(let field): field
        default: nil
        }
    }

    /// Whether it may write the key's own value.
    fileprivate func changesPlain(_ policy: MergePolicy) -> Bool {
        switch act {
        case .write, .erase: true
        case .remove: policy == .array
        case .clear, .put: policy == .dictionary
        case .replace: policy == .register
        default: false
        }
    }
}
