// SPDX-License-Identifier: Apache-2.0

/// What a mirror does with one key of an app's preferences and of a store.
package enum MirrorStep: Hashable, Sendable {
    /// There is nothing to do, or nothing may be done yet.
    case rest
    /// Both have the same, which is agreed on from now on.
    case agree
    /// The preferences take the store's value, or lose theirs with it.
    case take
    /// The store is told what the preferences have, or that they have nothing any more.
    case propose
}

/// Which way of looking at all keys is the right one at a time, see ``MirrorPact``.
package enum MirrorCourse: Hashable, Sendable {
    /// The first download is under way: what the store does not have may be on the server.
    case wait
    /// What was agreed on before says nothing about this store: the store's values win.
    case begin
    /// What differs from what was agreed on has changed.
    case compare
    /// The store has another account's values, and nothing of the earlier one's may reach it.
    case replace
}

/// Decides, for one key, what makes preferences and store equal.
///
/// Nil is "no value" for all three: a default that an app registers is no value, and what both have
/// lost is agreed on no longer. A change is what differs from what both agreed on last; where both
/// changed, the preferences' change is proposed, and the store resolves the conflict by its policy.
package enum MirrorRule {
    /// - Parameters:
    ///   - agreed: What both had last; nil also where they never had the same.
    ///   - merges: Whether the key's policy keeps something of both of two values that were written
    ///     without knowing of each other.
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

    /// What a proposal is a change of; nil: of nothing.
    ///
    /// Where the store lost a value without anybody's wish, all of the preferences' value is new to it,
    /// and not only what changed since.
    package static func base<Value: Equatable>(
        agreed: Value?, remote: Value?, course: MirrorCourse
    ) -> Value? {
        course == .begin && remote == nil ? nil : agreed
    }
}
