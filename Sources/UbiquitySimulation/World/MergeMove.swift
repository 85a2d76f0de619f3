// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// An app's change of a key whose writes merge, drawn at random from what the app sees.
package struct MergeMove {
    package enum Write {
        /// Like an app that declares no policy for the key.
        case plain(Content)
        case operation(MergeOperation)
    }

    /// The app's view of the key: its value, and its records in the store.
    package struct View {
        package var value: PropertyListValue?
        package var records: [Key: PropertyListValue]

        package init(value: PropertyListValue?, records: [Key: PropertyListValue]) {
            (self.value, self.records) = (value, records)
        }
    }

    private struct Change {
        var part: PartID
        var after: PropertyListValue
    }

    package let key: Key
    package let number: Int
    package private(set) var write: Write
    /// Makes the act from the parts that it changed; nil if it cannot have changed these.
    private var act: ([Change]) -> AppOperation.Act?

    private static let fields = ["f0", "f1", "f2"]

    private init(
        _ key: Key, _ number: Int, _ operation: MergeOperation,
        _ act: @escaping ([Change]) -> AppOperation.Act?
    ) {
        (self.key, self.number) = (key, number)
        (write, self.act) = (.operation(operation), act)
    }

    // MARK: - Under the policy

    /// - Parameters:
    ///   - remembered: The value that the app saw when it last wrote; nil if it remembers none.
    ///   - kept: The count of a mirror of preferences, including this amount; nil if nobody keeps
    ///     one.
    package init(
        _ key: Key, _ policy: MergePolicy, number: Int, remembered: PropertyListValue?,
        in view: View, _ chance: Chance,
        kept: (PropertyListValue) -> ExternalCount? = { _ in nil }
    ) {
        // An app may start from what it saw when it last wrote, as a mirror of preferences does.
        let known = view.value
        let seen = chance.coin() ? known : remembered ?? known
        switch policy {
        case .counter: self = .count(key, number, chance, kept)
        case .maximum, .minimum:
            let offer = AppOperation.offer(chance.int(1...1_000), number: number)
            self.init(key, number, MergeOperation(policy, from: seen, to: .integer(offer))) {
                changes in
                changes.first { $0.after == .integer(offer) }.map { .offer(part: $0.part, offer) }
            }
        case .array: self = .changeArray(key, number, seen, chance)
        case .dictionary: self = .changeDictionary(key, number, seen, chance)
        case .register:
            let replaced = view.records.values.filter { seen == known || seen == $0 }
                .compactMap { AppOperation.number(in: $0) }.sorted()
            let value = AppOperation.value(number)
            self.init(key, number, MergeOperation(policy, from: seen, to: value)) { _ in
                .replace(replaced)
            }
        }
    }

    private static func count(
        _ key: Key, _ number: Int, _ chance: Chance, _ kept: (PropertyListValue) -> ExternalCount?
    ) -> Self {
        // A multiple of a quarter, so that every order of adding gives the same sum.
        let amount: PropertyListValue =
            chance.perMille(200)
            ? .real(Double(chance.int64(1...9)) / 4) : .integer(chance.int64(1...9))
        let operation =
            kept(amount).map { MergeOperation(count: $0) }
            ?? MergeOperation(.counter, from: .integer(0), to: amount)
        return Self(key, number, operation) { changes in
            let runs = changes.filter { AppOperation.count(in: $0.after) != nil }
            let own = runs.min { $0.part.text.string.utf8.count < $1.part.text.string.utf8.count }
            guard let own, let times = AppOperation.count(in: own.after)?.times else { return nil }
            return .count(part: own.part, times: times, amount: amount.amount ?? 0)
        }
    }

    private static func changeArray(
        _ key: Key, _ number: Int, _ seen: PropertyListValue?, _ chance: Chance
    ) -> Self {
        let elements = seen?.elements ?? []
        if !elements.isEmpty, chance.perMille(400) {
            let removed = chance.pick(elements)
            let rest = elements.filter { $0 != removed }
            return Self(key, number, MergeOperation(.array, from: seen, to: .array(rest))) { _ in
                .remove(AppOperation.number(in: removed) ?? 0)
            }
        }
        let all = elements + [AppOperation.value(number)]
        return Self(key, number, MergeOperation(.array, from: seen, to: .array(all))) { _ in .add }
    }

    private static func changeDictionary(
        _ key: Key, _ number: Int, _ seen: PropertyListValue?, _ chance: Chance
    ) -> Self {
        let field = chance.pick(fields)
        let isClearing = seen?.entries?[ExactString(field)] != nil && chance.perMille(250)
        return changeField(field, of: key, number, seen, isClearing: isClearing)
    }

    private static func changeField(
        _ field: String, of key: Key, _ number: Int, _ seen: PropertyListValue?, isClearing: Bool
    ) -> Self {
        var entries = seen?.entries ?? [:]
        let old = entries[ExactString(field)]
        entries[ExactString(field)] = isClearing ? nil : AppOperation.value(number)
        let operation = MergeOperation(.dictionary, from: seen, to: .dictionary(entries))
        return Self(key, number, operation) { _ in
            isClearing ? .clear(field) : .put(field, over: AppOperation.number(in: old))
        }
    }

    /// Sets a field of a dictionary, or removes it.
    init(
        field: String, of key: Key, number: Int, isClearing: Bool, in view: View
    ) {
        self = .changeField(field, of: key, number, view.value, isClearing: isClearing)
    }

    static func field(_ chance: Chance) -> String { chance.pick(fields) }

    // MARK: - Replacing everything

    /// Removes the key.
    package init(
        erasing key: Key, _ policy: MergePolicy, number: Int, in view: View, _ chance: Chance
    ) {
        let seen = view.records
        self.init(key, number, MergeOperation(policy, from: view.value, to: nil)) { _ in
            .erase(seen: seen)
        }
        if !chance.coin() { write = .plain(.deleted) }
    }

    /// Writes the key like an app that declares no policy for it.
    package init(
        plainly key: Key, _ policy: MergePolicy, number: Int, in view: View
    ) {
        let seen = view.records
        let value = AppOperation.plain(number, policy)
        self.init(key, number, MergeOperation(policy, from: nil, to: value)) { _ in
            .write(seen: seen)
        }
        write = .plain(.value(value))
    }

    // MARK: -

    /// - Returns: The act; nil if there was none, because a value that is not greater changes
    ///   nothing.
    package func perform(
        in engine: inout SyncEngine, at now: ClockReading
    ) throws(LimitViolation) -> AppOperation.Act? {
        let before = engine.view(of: key).records
        switch write {
        case .plain(let content): try engine.write([key: content], at: now)
        case .operation(let operation):
            try engine.write([:], merging: [key: operation], at: now)
        }
        let after = engine.view(of: key).records
        let act = act(from: before, to: after)
        precondition(act != nil || after == before, "A write under a policy did something else.")
        return act
    }

    /// The same, of a write that was made elsewhere, by the key's records before and after it. Also
    /// nil if it cannot have changed these.
    package func act(
        from before: [Key: PropertyListValue], to after: [Key: PropertyListValue]
    ) -> AppOperation.Act? {
        guard case .operation(let operation) = write, operation.value != nil else { return act([]) }
        return after == before ? nil : act(changes(from: before, to: after))
    }

    private func changes(
        from before: [Key: PropertyListValue], to after: [Key: PropertyListValue]
    ) -> [Change] {
        after.sorted { $0.key < $1.key }.compactMap { record in
            guard let part = record.key.part, before[record.key] != record.value else {
                return nil
            }
            return Change(part: part, after: record.value)
        }
    }
}

extension MergePolicy {
    /// Whether it is harmless that two processes give new parts the same names.
    var survivesSnapshots: Bool { isExtremum || self == .dictionary }
}

extension AppOperation {
    /// The value of a write without a policy.
    package static func plain(_ number: Int, _ policy: MergePolicy) -> PropertyListValue {
        switch policy {
        case .counter: .integer(Int64(number) * 1_000)
        case .maximum, .minimum: .integer(offer(500, number: number))
        case .array: .array([value(number)])
        case .dictionary: .dictionary(["f0": value(number), "f1": value(number)])
        case .register: value(number)
        }
    }

    /// The number of the operation whose value the key's own record has; nil if there is none.
    package static func number(
        inPlain value: PropertyListValue?, _ policy: MergePolicy
    ) -> Int? {
        guard let value else { return nil }
        switch value {
        case .array(let elements): return number(in: elements.first)
        case .dictionary(let entries): return number(in: entries.values.first)
        case .integer(let plain) where policy == .counter: return Int(plain / 1_000)
        default: return number(in: value)
        }
    }
}

extension SyncEngine {
    package func view(of key: Key) -> MergeMove.View {
        MergeMove.View(value: self[key], records: contents.filter { $0.key.whole == key })
    }
}

extension PropertyListValue {
    fileprivate var elements: [PropertyListValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    fileprivate var entries: [ExactString: PropertyListValue]? {
        if case .dictionary(let entries) = self { entries } else { nil }
    }
}
