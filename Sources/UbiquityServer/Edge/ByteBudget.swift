// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Bytes that many may hold together.
///
/// State: `used`, guarded by its mutex.
final class ByteBudget: Sendable {
    private let used = Mutex(0)
    let max: Int

    init(max: Int) { self.max = max }

    /// - Returns: False if there is no room; then nothing was taken.
    func take(_ bytes: Int) -> Bool {
        used.withLock { used in
            guard used + bytes <= max else { return false }
            used += bytes
            return true
        }
    }

    /// Takes what is there already, room or not, or gives it back where it is less than 0.
    func note(_ bytes: Int) { used.withLock { $0 += bytes } }

    func give(_ bytes: Int) { note(-bytes) }

    var bytes: Int { used.withLock { $0 } }
    var isFull: Bool { bytes >= max }
}
