// SPDX-License-Identifier: Apache-2.0

/// The rule for merging writes of a key that would otherwise replace one another.
///
/// Such a key has parts. Each is an entry of its own in the engine, on disk, in the protocol and on
/// the server. Beside them is the key's own value, which was last written without a policy. Writes
/// are stored so that nothing is lost, and ``MergeState`` makes the visible value of all of it.
/// Clients that know nothing of policies carry the parts along.
///
/// A removal, and a write without a policy, replaces what its author has seen and nothing else.
/// Parts that only their own run changes say how far they had come, see ``PartOrder``.
package enum MergePolicy: Unicode.Scalar, Hashable, Sendable, CaseIterable {
    /// A number. Each run of each app has a part with its count, and the parts are added up. A
    /// second part of the run, counted negatively, says how much of that is removed.
    case counter = "c"
    /// A number, date or string. Each run of each app has a part with the greatest value that it
    /// wrote. When the part is removed, it says up to which value.
    case maximum = "x"
    /// The same with the smallest value.
    case minimum = "n"
    /// An array without duplicates. Each element is a part.
    case array = "a"
    /// A dictionary. Each entry is a part with its own name.
    case dictionary = "d"
    /// Any value. A part is a value that replaced everything its author knew. Where several are
    /// left, the app's own rule makes one value of them.
    case register = "r"
}

extension PartID {
    /// The kind of a dictionary's entry in a sealed account. Its name is random, and it has the
    /// inner key with the value: nobody but the devices knows either.
    static let hiddenEntry: Unicode.Scalar = "e"

    /// Nil for a kind that this version does not know.
    package var policy: MergePolicy? {
        isHiddenEntry ? .dictionary : kind.flatMap { MergePolicy(rawValue: $0) }
    }

    // Not the first character: an accent at the beginning of the name would combine with it.
    private var kind: Unicode.Scalar? { text.string.unicodeScalars.first }

    /// Whether it is a dictionary's entry whose name is not the inner key.
    package var isHiddenEntry: Bool { kind == Self.hiddenEntry }

    /// The sum of all runs that the server has folded, which are no longer listed. It is removed
    /// like any run.
    package static let fold = PartID("\(MergePolicy.counter.rawValue)+")!

    /// The part's name without its kind.
    var name: String { String(text.string.unicodeScalars.dropFirst()) }

    /// The part that says how much of this run's count is removed.
    var removal: PartID { PartID("\(MergePolicy.counter.rawValue)-\(name)") ?? self }

    /// Whether it is the removal of a count.
    var isRemoval: Bool { policy == .counter && name.utf8.first == UInt8(ascii: "-") }
}

extension Key {
    /// Whether it is a run's count or the removal of one. A device that was away for long must not
    /// lose what it counted meanwhile.
    package var isCount: Bool { part?.policy == .counter }

    /// Whether it is the removal of a run's count.
    var isRemoval: Bool { part?.isRemoval ?? false }
}

extension MergePolicy {
    /// Whether each run has a part that only goes in one direction. A removal does not delete it, but
    /// says how far it had come.
    package var isExtremum: Bool { self == .maximum || self == .minimum }

    /// Whether an extremum prefers `value` to `other`.
    func prefers(_ value: ComparableValue, to other: ComparableValue) -> Bool {
        self == .minimum ? value.isLess(than: other) : other.isLess(than: value)
    }

    /// Whether this policy can merge the value.
    package func fits(_ value: PropertyListValue) -> Bool {
        switch self {
        case .counter: Number(value) != nil
        case .maximum, .minimum: ComparableValue(value) != nil
        case .array: if case .array = value { true } else { false }
        case .dictionary: Self.fitsDictionary(value)
        case .register: true
        }
    }

    private static func fitsDictionary(_ value: PropertyListValue) -> Bool {
        guard case .dictionary(let entries) = value else { return false }
        return entries.keys.allSatisfy { $0.string.utf8.count < PartID.bytesMax }
    }
}
