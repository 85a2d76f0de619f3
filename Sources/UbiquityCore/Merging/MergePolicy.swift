// SPDX-License-Identifier: Apache-2.0

/// How the writes of a key merge that would replace one another.
///
/// Such a key has parts, each an entry of its own in engine, disk, protocol and server, and beside them
/// what the key itself has: the value that was last written without a policy. What is written is put so
/// that this loses nothing, and what the app sees is made of all of it, by ``Family``. Who knows nothing
/// of policies carries the parts all the same.
///
/// A removal, and a write without a policy, replaces what its author has seen and nothing else. Parts that
/// change in place, which only their run does, say so by how far they had come, see ``PartOrder``.
package enum MergePolicy: Character, Hashable, Sendable, CaseIterable {
    /// A number. Each run of each app has a part for what it has counted, and the parts add up. A second
    /// part of that run, counted negatively, says how far that was removed.
    case counter = "c"
    /// A number, date or string. Each run of each app has a part for the greatest that it wrote; removed,
    /// the part says up to where.
    case maximum = "x"
    /// The same for smaller ones.
    case minimum = "n"
    /// An array without repetition. Each element is a part.
    case array = "a"
    /// A dictionary. Each entry is a part, under its own name.
    case dictionary = "d"
    /// Any value. A part is a value that came in place of all that its author knew; where several
    /// are left, the app's own rule makes one of them.
    case register = "r"
}

extension PartID {
    /// Nil for a kind that this program does not know.
    package var policy: MergePolicy? {
        // Not the first character: an accent at the beginning of a name would be a part of it.
        text.string.unicodeScalars.first.flatMap { MergePolicy(rawValue: Character($0)) }
    }

    /// What stands after the kind.
    var name: String { String(text.string.unicodeScalars.dropFirst()) }

    /// Of what a run counts: the part that says how far that was removed.
    var removal: PartID { PartID("\(MergePolicy.counter.rawValue)-\(name)") ?? self }

    /// Whether it is one of those.
    var isRemoval: Bool { policy == .counter && name.hasPrefix("-") }
}

extension Key {
    /// Whether it is what a run has counted, or how far that was removed. A device that was away for long
    /// must not lose what it counted meanwhile.
    var isCount: Bool { part?.policy == .counter }
}

extension MergePolicy {
    /// Whether the value is of a kind that can be merged so.
    package func fits(_ value: PropertyListValue) -> Bool {
        switch self {
        case .counter: Number(value) != nil
        case .maximum, .minimum: Magnitude(value) != nil
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
