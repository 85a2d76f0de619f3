// SPDX-License-Identifier: Apache-2.0

/// Tells clouds apart, those too that are no more.
struct CloudName: Hashable, Sendable {
    private final class Identity: Sendable {}

    /// Held, so that no later one is at its place.
    private let identity = Identity()

    static func == (a: Self, b: Self) -> Bool { a.identity === b.identity }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(identity)) }
}
