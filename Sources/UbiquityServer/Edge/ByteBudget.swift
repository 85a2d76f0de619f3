// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// A budget of bytes shared by many users.
///
/// State: `used`, guarded by its mutex.
final class ByteBudget: Sendable {
    private let used = Mutex(0)
    let max: Int

    init(max: Int) { self.max = max }

    /// - Returns: False if the budget does not suffice; nothing was taken then.
    func take(_ bytes: Int) -> Bool {
        used.withLock { used in
            guard used + bytes <= max else { return false }
            used += bytes
            return true
        }
    }

    /// Takes bytes that already exist, even beyond the budget; returns them if the number is
    /// negative.
    func note(_ bytes: Int) { used.withLock { $0 += bytes } }

    func give(_ bytes: Int) { note(-bytes) }

    var bytes: Int { used.withLock { $0 } }
    var isFull: Bool { bytes >= max }
}
