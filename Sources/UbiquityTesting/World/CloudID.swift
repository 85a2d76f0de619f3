// SPDX-License-Identifier: Apache-2.0

/// Identifies a cloud, also among clouds that no longer exist.
struct CloudID: Hashable, Sendable {
    private final class Identity: Sendable {}

    /// Retained, so that no later object has its address.
    private let identity = Identity()

    static func == (a: Self, b: Self) -> Bool { a.identity === b.identity }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(identity)) }
}
