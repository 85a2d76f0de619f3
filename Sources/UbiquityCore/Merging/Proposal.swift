// SPDX-License-Identifier: Apache-2.0

/// What an app writes under a policy: the value went from one to another.
///
/// The difference is what counts: what the store has by now may be neither.
package struct Proposal: Hashable, Sendable {
    package var policy: MergePolicy
    /// What the app knew; nil: nothing.
    package var base: PropertyListValue?
    /// What the app wants; nil: nothing.
    package var value: PropertyListValue?

    /// What a run has counted in all, instead of a difference.
    var count: KeptCount?

    /// - Parameter count: Nothing, where the store has the run with at least as many times.
    package init(count: KeptCount) {
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

    /// Whether the policy can do anything with it. If not, the value is written as any other, and the
    /// later write wins.
    package var fits: Bool { value.map(policy.fits) ?? true }
}
