// SPDX-License-Identifier: Apache-2.0

/// What a write puts under a key: a value, or the key's deletion.
package enum Content: Hashable, Sendable {
    case deleted
    case value(PropertyListValue)

    /// Nil for a deletion.
    package var value: PropertyListValue? {
        if case .value(let value) = self { value } else { nil }
    }
}

extension Content: Comparable {
    package static func < (a: Content, b: Content) -> Bool {
        switch (a, b) {
        case (.deleted, .value): true
        case (.value(let a), .value(let b)): a < b
        case (_, .deleted): false
        }
    }
}

/// When and by which device an edit was made.
package struct Stamp: Hashable, Comparable, Sendable {
    package var timestamp: HybridTimestamp
    package var device: DeviceID

    package init(_ timestamp: HybridTimestamp, _ device: DeviceID) {
        self.timestamp = timestamp
        self.device = device
    }

    package static func < (a: Stamp, b: Stamp) -> Bool {
        (a.timestamp, a.device) < (b.timestamp, b.device)
    }
}

/// One write of one key.
package struct Record: Hashable, Sendable {
    package var key: Key
    package var content: Content
    package var stamp: Stamp

    package init(key: Key, content: Content, stamp: Stamp) {
        self.key = key
        self.content = content
        self.stamp = stamp
    }

    /// Whether this write gives way to the other one of the same key: the later wins, then the greater
    /// device. Neither of two with one stamp does, which only a cloned device writes. Of parts that their
    /// run changes in place, see ``PartOrder``, that which has come further wins.
    package func isOlder(than other: Record) -> Bool {
        isBehind(other) ?? (stamp < other.stamp)
    }

    /// Nil where the stamps decide.
    func isBehind(_ other: Record) -> Bool? {
        key.isPart ? PartOrder.isBehind(self, other) : nil
    }

    /// Whether this write replaces the other one of the same key: the later does, and of two with one
    /// stamp that with the greater content.
    package func wins(over other: Record) -> Bool {
        other.isOlder(than: self) || (!isOlder(than: other) && other.content < content)
    }

    /// The winner of the two. Idempotent, commutative and associative.
    package func merged(with other: Record) -> Record {
        other.wins(over: self) ? other : self
    }
}
