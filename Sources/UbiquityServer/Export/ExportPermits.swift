// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// Which accounts are being exported: each export has a store in memory, and lasts as long as who
/// asked for it takes to read it.
///
/// State: `accounts`, guarded by its lock.
final class ExportPermits: Sendable {
    private let accounts = Mutex<Set<AccountID>>([])
    private static let max = 4

    /// Held as long as an export lasts, and given back when it is released.
    final class Permit: Sendable {
        private let permits: ExportPermits
        private let account: AccountID

        fileprivate init(_ permits: ExportPermits, _ account: AccountID) {
            self.permits = permits
            self.account = account
        }

        deinit { permits.giveBack(account) }
    }

    /// - Throws: ``Busy`` while this account is being exported, or as many as may be at once.
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
