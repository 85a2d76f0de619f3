// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import ProcessHarness
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// Every storage there is; the contract's tests run over each.
enum Backend: Hashable, CaseIterable, CustomTestStringConvertible {
    case sqlite
    case postgresql

    /// PostgreSQL only where it is installed.
    static let allCases: [Backend] = [.sqlite] + PostgresDatabase.backends
    /// The storages of several nodes.
    static let shared: [Backend] = PostgresDatabase.backends

    /// With the sample's account.
    func open(in folder: TemporaryFolder) throws -> any ServerStorage {
        let storage: any ServerStorage =
            switch self {
            case .sqlite: try SQLiteServerStorage.openForServer(folder.file("test.sqlite"))
            case .postgresql: try PostgresDatabase(in: folder).open()
            }
        try storage.makeSampleAccount()
        return storage
    }

    /// Several nodes over one storage with the sample's account.
    func openNodes(_ count: Int, in folder: TemporaryFolder) throws -> [any ServerStorage] {
        guard self == .postgresql else { throw Trouble("a second node over SQLite") }
        let database = try PostgresDatabase(in: folder)
        let nodes = try (0..<count).map { _ in try database.open() }
        try nodes[0].makeSampleAccount()
        return nodes
    }

    var testDescription: String { "\(self)" }
}

extension ServerStorage {
    /// Nil for an unknown or revoked credential.
    func device(credential: SecretHash) throws -> Device? {
        guard let rights = try rights(of: [credential])[0].get() else { return nil }
        let device = try devices(of: rights.account).first { $0.reference == rights.reference }
        #expect(device?.rights == rights)
        return device
    }
}

/// The content that the contract's tests push.
enum Sample {
    static let account = Account(
        id: AccountID(rawValue: 0xAA), name: AccountName("ada")!, createdMilliseconds: 1)
    static let device = DeviceID(rawValue: 0xFFFF_FFFF_FFFF_FFFE)
    static let store = StoreReference(
        account: account.id, identifier: try! StoreIdentifier("notes"))

    static func rules(
        now: Int64 = 1_000, epoch: UInt64 = 7, history: HistoryLimits = HistoryLimits()
    ) -> CommitRules {
        CommitRules(
            admission: PushAdmission(limits: StoreLimits(), now: now, history: history),
            run: epoch, storesPerAccountMax: 2)
    }

    /// - Parameter credential: Its text.
    static func newDevice(
        _ credential: String = "credential", displayName: String = "laptop", devicesMax: Int = 9
    ) -> NewDevice {
        NewDevice(
            displayName: displayName, credential: SecretHash(of: credential),
            devicesPerAccountMax: devicesMax)
    }

    /// - Parameter value: Nil: a deletion.
    static func record(
        _ key: String, _ value: PropertyListValue?, at time: Int64, by device: DeviceID = device
    ) -> Record {
        Record(
            key: try! Key(key), content: value.map(Content.value) ?? .deleted,
            stamp: Stamp(HybridTimestamp(milliseconds: time, counter: 3), device))
    }

    /// A revision of the sample's store that was committed in a run.
    static func position(
        _ revision: Int64, run: UInt64 = 7, of store: StoreReference = store
    ) -> Position {
        Position(epoch: store.epoch(inRun: run), revision: revision)
    }

    static func push(_ writes: Record..., to store: StoreReference = store) -> PendingPush {
        PendingPush(store: store, push: Push([try! Transaction(writes)]))
    }
}

extension ServerStorage {
    func accounts() throws(StorageError) -> [Account] { try accounts(after: nil, max: .max) }

    func redeem(
        _ code: SecretHash, by device: NewDevice, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device) {
        try redeem(code, by: device, naming: nil, now: now)
    }

    /// Compacts tombstones, and drops counts as a server does.
    func compact(
        _ rule: CompactionRule, in store: StoreReference, now: Int64
    ) throws(StorageError) -> Int {
        try compact(rule, folded: .folded, in: store, now: now)
    }

    func auditEntries(before number: Int64?, max: Int) throws(StorageError) -> [AuditEntry] {
        try auditEntries(before: number, AuditFilter(), max: max)
    }

    func makeSampleAccount() throws(StorageError) {
        try createAccount(Sample.account, accountsMax: 9, by: .operatorLocally)
    }

    /// A code that is good until `expires`.
    func addCode(
        _ text: String, expiresMilliseconds: Int64 = 2_000,
        terms: CredentialTerms = CredentialTerms(),
        now: Int64 = 1_000
    ) throws(StorageError) {
        let code = NewCode(
            hash: SecretHash(of: text), account: Sample.account.id,
            expiresMilliseconds: expiresMilliseconds,
            terms: terms)
        try addCode(code, now: now, by: .operatorLocally)
    }

    /// Commits one push and gives what it did; nil if it was not committed.
    @discardableResult
    func commit(
        _ push: PendingPush, now: Int64 = 1_000, epoch: UInt64 = 7
    ) throws(StorageError) -> CommittedPush? {
        let results = try commit([push], rules: Sample.rules(now: now, epoch: epoch))
        return try? results[0].get()
    }

    /// The keys that a read gives, and nil if the position does not hold.
    func keys(since: Position?) throws(StorageError) -> [String]? {
        guard case .changes(let records, _, _, _) = try read(Sample.store, since: since) else {
            return nil
        }
        return try records.map { record throws(StorageError) in try record.record().key.string }
            .sorted()
    }
}
