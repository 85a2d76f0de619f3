// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// A budget of bytes shared by many users.
///
/// State: `used`, which is atomic.
final class ByteBudget: Sendable {
    private let used = Atomic(0)
    private let max: Int

    init(max: Int) { self.max = max }

    /// - Returns: False if the budget does not suffice; nothing was taken then.
    func take(_ bytes: Int) -> Bool {
        let (_, now) = used.add(bytes, ordering: .relaxed)
        if now <= max { return true }
        give(bytes)
        return false
    }

    /// Takes bytes that already exist, even beyond the budget; returns them if the number is
    /// negative.
    func note(_ bytes: Int) { used.add(bytes, ordering: .relaxed) }

    func give(_ bytes: Int) { used.subtract(bytes, ordering: .relaxed) }

    var bytes: Int { used.load(ordering: .relaxed) }
    var isFull: Bool { bytes >= max }
}
