// SPDX-License-Identifier: Apache-2.0

extension MergeState {
    /// The value that the app sees; nil if there is none.
    ///
    /// The same on every device that has the same parts, in whatever order they arrived.
    /// - Complexity: O(*n* log *n*) in the number of parts.
    func value(_ resolver: Resolver?) -> PropertyListValue? {
        guard let policy else { return parts.last?.value ?? base?.value }
        let parts = parts(of: policy)
        return switch policy {
        case .counter: sum(of: parts)
        case .maximum: greatest(of: parts) { $0.isLess(than: $1) }
        case .minimum: greatest(of: parts) { $1.isLess(than: $0) }
        case .array: array(of: parts)
        case .dictionary: dictionary(of: parts)
        case .register: resolved(parts, resolver)
        }
    }

    /// Adds numbers in the order of the parts' names, because the order matters for real numbers.
    private func sum(of parts: [Part]) -> PropertyListValue {
        let numbers = parts.sorted { $0.id < $1.id }.compactMap(counted(by:))
        return numbers.reduce(base.flatMap { Number($0.value) } ?? .zero, +).value
    }

    /// The greatest among the values of the class written last. Values of other classes come from
    /// another version of the app.
    private func greatest(
        of parts: [Part], _ isLess: (ComparableValue, ComparableValue) -> Bool
    ) -> PropertyListValue? {
        let all = ([base?.value] + parts.map(\.value)).compactMap {
            $0.flatMap { ComparableValue($0) }
        }
        guard let last = all.last?.class else { return parts.last?.value }
        return all.filter { $0.class == last }.max(by: isLess)?.value
    }

    private func array(of parts: [Part]) -> PropertyListValue {
        var elements: [PropertyListValue] = []
        var seen: Set<PropertyListValue> = []
        if case .array(let base)? = base?.value {
            elements = base.filter { seen.insert($0).inserted }
        }
        return .array(elements + parts.map(\.value).filter { seen.insert($0).inserted })
    }

    private func dictionary(of parts: [Part]) -> PropertyListValue {
        var entries: [ExactString: PropertyListValue] = [:]
        if case .dictionary(let base)? = base?.value { entries = base }
        for part in parts { entries[ExactString(part.id.name)] = part.value }
        return .dictionary(entries)
    }

    /// The value that the rule makes of all siblings, equal ones counted once; the last one without
    /// a rule.
    private func resolved(_ parts: [Part], _ resolver: Resolver?) -> PropertyListValue? {
        var concurrentValues = parts.map { ConcurrentValue(value: $0.value, stamp: $0.stamp) }
        if let base { concurrentValues.append(base) }
        concurrentValues.sort { ($0.stamp, $0.value) < ($1.stamp, $1.value) }
        guard let first = concurrentValues.first else { return nil }
        guard let resolver else { return concurrentValues.last?.value }
        return concurrentValues.dropFirst().reduce(first) { earlier, later in
            guard earlier.value != later.value else { return later }
            return ConcurrentValue(value: resolver(earlier, later), stamp: later.stamp)
        }.value
    }
}

extension Sequence<Record> {
    /// The values that an app without merge rules of its own sees of these records.
    package var visibleValues: [Key: PropertyListValue] {
        EntryTable(disk: map { StoredEntry(key: $0.key, confirmed: $0) }).values
    }
}
