// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// Limits the pushes under way of each account, from their first byte to their answer, so that one
/// account cannot take all of the memory and places for pushes.
///
/// State: `shares`, guarded by its lock.
final class PushPermits: Sendable {
    private struct Share {
        var pushes = 0
        var bytes = 0
    }

    /// A device makes one push at a time.
    private static let pushesMax = 64
    private let shares = Mutex<[AccountID: Share]>([:])
    private let bytesMax: Int

    init(_ settings: ServerSettings) {
        bytesMax = max(settings.bodiesBytesMax / 4, settings.limits.pushBytesMax)
    }

    /// Held while a push is under way. Returned when it is released.
    ///
    /// State: `bytes`, which is atomic.
    final class Permit: Sendable {
        private let permits: PushPermits
        private let account: AccountID
        private let bytes = Atomic(0)

        fileprivate init(_ permits: PushPermits, _ account: AccountID) {
            self.permits = permits
            self.account = account
        }

        /// - Returns: False if the account's pushes have reached their maximum of bytes.
        func take(_ bytes: Int) -> Bool {
            guard permits.take(bytes, account) else { return false }
            self.bytes.add(bytes, ordering: .relaxed)
            return true
        }

        deinit { permits.giveBack(bytes.load(ordering: .relaxed), account) }
    }

    /// - Throws: ``Busy`` if the account has its maximum of pushes under way.
    func take(_ account: AccountID) throws(Busy) -> Permit {
        let isFree = shares.withLock { shares in
            guard shares[account, default: Share()].pushes < Self.pushesMax else { return false }
            shares[account, default: Share()].pushes += 1
            return true
        }
        guard isFree else { throw Busy() }
        return Permit(self, account)
    }

    private func take(_ bytes: Int, _ account: AccountID) -> Bool {
        shares.withLock { shares in
            guard shares[account, default: Share()].bytes + bytes <= bytesMax else { return false }
            shares[account, default: Share()].bytes += bytes
            return true
        }
    }

    private func giveBack(_ bytes: Int, _ account: AccountID) {
        shares.withLock { shares in
            shares[account]?.pushes -= 1
            shares[account]?.bytes -= bytes
            if shares[account]?.pushes == 0 { shares[account] = nil }
        }
    }
}
