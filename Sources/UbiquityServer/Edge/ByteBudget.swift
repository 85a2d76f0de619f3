// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Bytes that many may hold together.
///
/// State: `used`, guarded by being atomic.
final class ByteBudget: Sendable {
    private let used = Atomic(0)
    let max: Int

    init(max: Int) { self.max = max }

    /// - Returns: False if there is no room; then nothing was taken.
    func take(_ bytes: Int) -> Bool {
        let (_, now) = used.add(bytes, ordering: .relaxed)
        if now <= max { return true }
        give(bytes)
        return false
    }

    /// Takes what is there already, room or not, or gives it back where it is less than 0.
    func note(_ bytes: Int) { used.add(bytes, ordering: .relaxed) }

    func give(_ bytes: Int) { used.subtract(bytes, ordering: .relaxed) }

    var bytes: Int { used.load(ordering: .relaxed) }
    var isFull: Bool { bytes >= max }
}
