// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// Limits concurrent exports. Each has a store in memory, and lasts as long as its client takes to
/// read it.
///
/// State: `accounts`, guarded by its lock.
final class ExportPermits: Sendable {
    private let accounts = Mutex<Set<AccountID>>([])
    private static let max = 4

    /// Held for the duration of an export. Returned when it is released.
    final class Permit: Sendable {
        private let permits: ExportPermits
        private let account: AccountID

        fileprivate init(_ permits: ExportPermits, _ account: AccountID) {
            self.permits = permits
            self.account = account
        }

        deinit { permits.giveBack(account) }
    }

    /// - Throws: ``Busy`` while this account is being exported, or the maximum of exports is
    ///   running.
    func take(_ account: AccountID) throws(Busy) -> Permit {
        let isFree = accounts.withLock { accounts in
            accounts.count < Self.max && accounts.insert(account).inserted
        }
        guard isFree else { throw Busy() }
        return Permit(self, account)
    }

    private func giveBack(_ account: AccountID) {
        accounts.withLock { _ = $0.remove(account) }
    }
}
