// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// Places and bytes of one kind (pushes, answers, streams, exports), shared by all accounts. One
/// account gets at most a quarter of the bytes and a maximum of places. All of its confined devices
/// together get at most a quarter of that.
///
/// State: `shares`, guarded by its lock.
final class AccountShares: Sendable {
    fileprivate enum Holder: Hashable {
        case account(AccountID)
        case confined(AccountID)
    }

    private struct Share {
        var places = 0
        var bytes = 0
    }

    private static let part = 4
    private let shares = Mutex<[Holder: Share]>([:])
    private let all: ByteBudget
    private let placesMax: Int
    private let bytesMin: Int

    /// - Parameters:
    ///   - all: The budget of all accounts.
    ///   - placesMax: The maximum of places of an account.
    ///   - bytesMin: The minimum size of a share.
    init(of all: ByteBudget, placesMax: Int, bytesMin: Int = 0) {
        self.all = all
        self.placesMax = placesMax
        self.bytesMin = bytesMin
    }

    /// - Throws: ``Busy`` if the account or its confined devices have used up their places.
    func take(_ rights: DeviceRights) throws(Busy) -> Permit {
        try take(
            for: [.account(rights.account)]
                + (rights.isConfined ? [.confined(rights.account)] : []))
    }

    /// - Throws: ``Busy`` if the account has used up its places.
    func take(_ account: AccountID) throws(Busy) -> Permit { try take(for: [.account(account)]) }

    private func take(for holders: [Holder]) throws(Busy) -> Permit {
        let isFree = shares.withLock { shares in
            guard holders.allSatisfy({ shares[$0]?.places ?? 0 < placesMax(of: $0) }) else {
                return false
            }
            for holder in holders { shares[holder, default: Share()].places += 1 }
            return true
        }
        guard isFree else { throw Busy() }
        return Permit(self, holders)
    }

    private func placesMax(of holder: Holder) -> Int {
        switch holder {
        case .account: placesMax
        case .confined: max(1, placesMax / Self.part)
        }
    }

    private func bytesMax(of holder: Holder) -> Int {
        switch holder {
        case .account: max(all.max / Self.part, bytesMin)
        case .confined: max(all.max / Self.part / Self.part, bytesMin)
        }
    }

    /// A place and the bytes taken with it. Both are returned when it ends or is deallocated.
    ///
    /// State: `bytes`, guarded by its lock; nil once it has ended.
    final class Permit: Sendable {
        private let shares: AccountShares
        private let holders: [Holder]
        private let bytes = Mutex<Int?>(0)

        fileprivate init(_ shares: AccountShares, _ holders: [Holder]) {
            self.shares = shares
            self.holders = holders
        }

        deinit { end() }

        /// - Returns: False if that exceeds the share of the holder or the budget of all. Nothing
        ///   was taken then.
        func take(_ count: Int) -> Bool {
            bytes.withLock { bytes in
                guard let taken = bytes, shares.add(count, to: holders) else { return false }
                bytes = taken + count
                return true
            }
        }

        /// Takes bytes that already exist, even beyond the budget.
        func note(_ count: Int) {
            bytes.withLock { bytes in
                guard let taken = bytes else { return }
                shares.note(count, of: holders)
                bytes = taken + count
            }
        }

        func give(_ count: Int) { note(-count) }

        /// Whether the share of the holder or the budget of all is used up.
        var isFull: Bool { shares.isFull(holders) }

        func end() {
            bytes.withLock { bytes in
                guard let taken = bytes else { return }
                shares.end(taken, of: holders)
                bytes = nil
            }
        }
    }

    private func add(_ count: Int, to holders: [Holder]) -> Bool {
        shares.withLock { shares in
            let fits = holders.allSatisfy { holder in
                shares[holder]?.bytes ?? 0 <= bytesMax(of: holder) - count
            }
            guard fits, all.take(count) else { return false }
            for holder in holders { shares[holder]?.bytes += count }
            return true
        }
    }

    private func note(_ count: Int, of holders: [Holder]) {
        all.note(count)
        shares.withLock { shares in
            for holder in holders { shares[holder]?.bytes += count }
        }
    }

    private func isFull(_ holders: [Holder]) -> Bool {
        all.isFull
            || shares.withLock { shares in
                holders.contains { shares[$0]?.bytes ?? 0 >= bytesMax(of: $0) }
            }
    }

    private func end(_ count: Int, of holders: [Holder]) {
        all.give(count)
        shares.withLock { shares in
            for holder in holders {
                shares[holder]?.bytes -= count
                shares[holder]?.places -= 1
                if shares[holder]?.places == 0 { shares[holder] = nil }
            }
        }
    }
}

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
