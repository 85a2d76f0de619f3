// SPDX-License-Identifier: Apache-2.0

/// An app's write under a policy: a change from one value to another.
///
/// Only the difference counts, because the store may hold neither value by now.
package struct MergeOperation: Hashable, Sendable {
    package var policy: MergePolicy
    /// The value that the app knew; nil if it knew none.
    package var base: PropertyListValue?
    /// The value that the app wants; nil to remove it.
    package var value: PropertyListValue?

    /// The whole count of a run, in place of a difference.
    var count: ExternalCount?

    /// - Parameter count: Changes nothing if the store has the run with at least as many times.
    package init(count: ExternalCount) {
        policy = .counter
        self.count = count
        value = .integer(0)
    }

    package init(_ policy: MergePolicy, from base: PropertyListValue?, to value: PropertyListValue?)
    {
        self.policy = policy
        self.base = base
        self.value = value
    }

    /// Whether the policy can apply it. If not, the value is written without a policy, and the
    /// later write wins.
    package var fits: Bool { value.map(policy.fits) ?? true }
}
