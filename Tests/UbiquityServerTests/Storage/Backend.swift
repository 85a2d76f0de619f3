// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

@testable internal import UbiquityServer

/// Every storage there is; the contract's tests run over each.
enum Backend: CaseIterable {
    case memory
    case sqlite

    func open(in folder: TemporaryFolder) throws -> any ServerStorage {
        switch self {
        case .memory: MemoryServerStorage()
        case .sqlite: try SQLiteServerStorage.openForServer(folder.file("test.sqlite"))
        }
    }
}

/// What the contract's tests push.
enum Sample {
    static let account = Account(
        id: AccountID("00000000000000aa"), name: AccountName("ada")!, created: 1)
    static let device = DeviceID(rawValue: 0xFFFF_FFFF_FFFF_FFFE)
    static let store = StoreKey(account: account.id, identifier: try! StoreIdentifier("notes"))

    static func rules(now: Int64 = 1_000, epoch: UInt64 = 7) -> CommitRules {
        CommitRules(
            admission: PushAdmission(limits: StoreLimits(), now: now), epoch: epoch,
            storesPerAccountMax: 2)
    }

    /// - Parameter value: Nil: a deletion.
    static func record(_ key: String, _ value: PropertyListValue?, at time: Int64) -> Record {
        Record(
            key: try! Key(key), content: value.map(Content.value) ?? .deleted,
            stamp: Stamp(HybridTimestamp(milliseconds: time, counter: 3), device))
    }

    static func push(_ writes: Record..., to store: StoreKey = store) -> WaitingPush {
        WaitingPush(store: store, push: Push([try! Transaction(writes)]))
    }
}

extension ServerStorage {
    /// Commits one push and gives what it did; nil if it was not committed.
    @discardableResult
    func commit(
        _ push: WaitingPush, now: Int64 = 1_000, epoch: UInt64 = 7
    ) throws(StorageError) -> CommittedPush? {
        let outcomes = try commit([push], rules: Sample.rules(now: now, epoch: epoch))
        guard case .committed(let commit) = outcomes.first else { return nil }
        return commit
    }

    /// The keys that a read gives, and nil if the position does not hold.
    func keys(since: Position?) throws(StorageError) -> [String]? {
        guard case .changes(let records, _, _) = try read(Sample.store, since: since) else {
            return nil
        }
        return records.map(\.key.string).sorted()
    }
}
