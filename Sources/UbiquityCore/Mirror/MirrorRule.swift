// SPDX-License-Identifier: Apache-2.0

/// The action that a mirror takes for one key of an app's preferences and the store.
package enum MirrorStep: Hashable, Sendable {
    /// Nothing to do, or nothing may be done yet.
    case rest
    /// Both have the same value, which becomes the agreed one.
    case agree
    /// The preferences take the store's value, or its deletion.
    case take
    /// The preferences' value or deletion is written to the store.
    case propose
}

/// The way to compare all keys at a given time, see ``MirrorPact``.
package enum MirrorCourse: Hashable, Sendable {
    /// The first download is under way: a key missing in the store may be on the server.
    case wait
    /// Earlier agreements say nothing about this store: the store's values win.
    case begin
    /// A value that differs from the agreed one has changed.
    case compare
    /// The store holds another account's values, and nothing of the earlier account may reach it.
    case replace
}

/// Decides, for one key, how to make preferences and store equal.
///
/// Nil means "no value" for all three. A registered default is no value, and a key that both have
/// lost has no agreed value any more. A change is a difference from the last agreed value. Where
/// both changed, the preferences' change is proposed, and the store resolves the conflict by its
/// policy.
package enum MirrorRule {
    /// - Parameters:
    ///   - agreed: The last common value; nil also if there never was one.
    ///   - merges: Whether the key's policy keeps something of both of two values that were written
    ///     without knowledge of each other.
    package static func step<Value: Equatable>(
        agreed: Value?, local: Value?, remote: Value?, course: MirrorCourse, merges: Bool = false
    ) -> MirrorStep {
        if course == .wait { return .rest }
        if local == remote { return agreed == local ? .rest : .agree }
        if course == .replace { return .take }
        if course == .compare, agreed != nil { return local == agreed ? .take : .propose }
        // Nothing was agreed on, or not with this store. The store's value wins: a fresh install
        // overwrites nothing.
        if local == nil { return .take }
        if remote == nil { return .propose }
        return merges && local != agreed ? .propose : .take
    }

    /// The base value of a proposal; nil if it has none.
    ///
    /// Where the store lost a value by accident, the whole of the preferences' value is
    /// new to it, not only the change.
    package static func base<Value: Equatable>(
        agreed: Value?, remote: Value?, course: MirrorCourse
    ) -> Value? {
        course == .begin && remote == nil ? nil : agreed
    }
}
