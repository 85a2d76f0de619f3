// SPDX-License-Identifier: Apache-2.0

/// The content of a write: a value, or the key's deletion.
package enum Content: Hashable, Sendable {
    case deleted
    case value(PropertyListValue)

    /// Nil for a deletion.
    package var value: PropertyListValue? {
        if case .value(let value) = self { value } else { nil }
    }

    /// Whether it is a sealed value.
    package var isSealed: Bool { if case .value(.sealed) = self { true } else { false } }
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

/// The time, the device and a digest of an edit, which together order all writes.
package struct Stamp: Hashable, Comparable, Sendable {
    package var timestamp: HybridTimestamp
    package var device: DeviceID
    /// The digest of everything written at once, see ``ValueFingerprint/digest(of:)``. Two
    /// processes of one device, or two copies of it, can give two transactions the same timestamp;
    /// the digest then orders them, for all of their keys alike. Only the author computes it; 0
    /// means that a client without digests wrote it.
    package var digest: UInt64

    package init(_ timestamp: HybridTimestamp, _ device: DeviceID, digest: UInt64 = 0) {
        self.timestamp = timestamp
        self.device = device
        self.digest = digest
    }

    package var withoutDigest: Stamp { Stamp(timestamp, device) }

    package static func < (a: Stamp, b: Stamp) -> Bool {
        (a.timestamp, a.device, a.digest) < (b.timestamp, b.device, b.digest)
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

    /// Whether this write loses to the other one of the same key: the one with the greater stamp
    /// wins. Of two with the same stamp, neither loses. For parts that their run changes in place,
    /// the one that has come further wins, see ``PartOrder``.
    package func isOlder(than other: Record) -> Bool {
        isBehind(other) ?? (stamp < other.stamp)
    }

    /// Nil where the stamps decide.
    func isBehind(_ other: Record) -> Bool? {
        key.isPart ? PartOrder.isBehind(self, other) : nil
    }

    /// Whether this write replaces the other one of the same key: the one with the greater stamp
    /// wins. Equal stamps come only from clients without digests; then the greater content wins.
    package func wins(over other: Record) -> Bool {
        other.isOlder(than: self) || (!isOlder(than: other) && other.content < content)
    }

    /// Whether the other record is this write as returned by a server without digests.
    package func isWithoutDigest(_ other: Record) -> Bool {
        var mine = self
        mine.stamp = stamp.withoutDigest
        return mine == other
    }

    /// The winner of the two. Idempotent, commutative and associative.
    package func merged(with other: Record) -> Record {
        other.wins(over: self) ? other : self
    }
}

extension Stamp {
    /// The stamp just after this one, and before any that its author makes later.
    var following: Stamp { Stamp(timestamp.next, .unassigned) }
}
