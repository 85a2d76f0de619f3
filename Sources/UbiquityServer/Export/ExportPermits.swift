// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// How many exports are under way: each has a store in memory.
///
/// State: `count`, guarded by its lock.
final class ExportPermits: Sendable {
    private let count = Mutex(0)
    private static let max = 4

    /// Held as long as an export lasts, and given back when it is released.
    final class Permit: Sendable {
        private let permits: ExportPermits

        fileprivate init(_ permits: ExportPermits) { self.permits = permits }

        deinit { permits.count.withLock { $0 -= 1 } }
    }

    /// - Throws: ``Busy`` while as many are under way as may.
    func take() throws(Busy) -> Permit {
        let isFree = count.withLock { count in
            guard count < Self.max else { return false }
            count += 1
            return true
        }
        guard isFree else { throw Busy() }
        return Permit(self)
    }
}
