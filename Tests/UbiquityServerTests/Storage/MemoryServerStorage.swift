// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

@testable internal import UbiquityServer

/// The contract of a storage in its plainest form: everything in one value behind one lock.
final class MemoryServerStorage: ServerStorage {
    private struct Store {
        var state = StoreState()
        var records: [Key: Entry] = [:]
        var passed: [DeviceID: Int64] = [:]
    }

    private struct Entry {
        var record: Record
        var revision: Int64
        var committed: Int64
    }

    private struct SignedIn {
        var device: Device
        var credential: SecretHash
        var isRevoked = false
    }

    private struct State {
        var operatorHash: SecretHash?
        var accounts: [AccountID: Account] = [:]
        var codes: [SecretHash: (account: AccountID, expires: Int64)] = [:]
        var devices: [DeviceName: SignedIn] = [:]
        var stores: [StoreKey: Store] = [:]
    }

    private let state = Mutex(State())
    /// What commits fail with.
    let failure = Mutex<StorageError?>(nil)

    func operatorHash() -> SecretHash? { state.withLock { $0.operatorHash } }
    func setOperatorHash(_ hash: SecretHash) { state.withLock { $0.operatorHash = hash } }
    func hasForeignWrites() -> Bool { false }
    func close() {}

    func createAccount(_ account: Account, accountsMax: Int) throws(StorageError) {
        try state.withLock { state throws(StorageError) in
            guard !state.accounts.values.contains(where: { $0.name == account.name }) else {
                throw .accountExists
            }
            guard state.accounts.count < accountsMax else { throw .tooMany("accounts") }
            state.accounts[account.id] = account
        }
    }

    func account(named name: AccountName) -> Account? {
        accounts().first { $0.name == name }
    }

    func account(_ id: AccountID) -> Account? { state.withLock { $0.accounts[id] } }

    func accounts() -> [Account] {
        state.withLock { state in
            state.accounts.values.sorted {
                $0.name.string.utf8.lexicographicallyPrecedes($1.name.string.utf8)
            }
        }
    }

    func addCode(_ hash: SecretHash, for account: AccountID, expires: Int64, now: Int64) {
        state.withLock { state in
            state.codes = state.codes.filter { $0.value.expires > now }
            state.codes[hash] = (account, expires)
        }
    }

    func redeem(
        _ code: SecretHash, by device: NewDevice, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device) {
        try state.withLock { state throws(StorageError) in
            guard let found = state.codes[code], found.expires > now,
                let account = state.accounts[found.account]
            else { throw .codeInvalid }
            let count = state.devices.values.count {
                !$0.isRevoked && $0.device.name.account == account.id
            }
            guard count < device.devicesPerAccountMax else {
                throw .tooMany("devices in this account")
            }
            state.codes[code] = nil
            let name = DeviceName(account: account.id, id: .random())
            let new = Device(name: name, title: device.title, created: now, seen: now)
            state.devices[name] = SignedIn(device: new, credential: device.credential)
            return (account, new)
        }
    }

    func device(credential: SecretHash) -> Device? {
        state.withLock { state in
            state.devices.values.first { $0.credential == credential && !$0.isRevoked }?.device
        }
    }

    func devices(of account: AccountID) -> [Device] {
        state.withLock { state in
            state.devices.values.filter { !$0.isRevoked && $0.device.name.account == account }
                .map(\.device).sorted { $0.created < $1.created }
        }
    }

    func revoke(_ device: DeviceName, now: Int64) -> Bool {
        state.withLock { state in
            guard state.devices[device]?.isRevoked == false else { return false }
            state.devices[device]?.isRevoked = true
            return true
        }
    }

    func live(among devices: Set<DeviceName>) -> Set<DeviceName> {
        state.withLock { state in devices.filter { state.devices[$0]?.isRevoked == false } }
    }

    func note(_ sightings: Sightings) {
        state.withLock { state in
            for (device, time) in sightings.seen {
                let seen = state.devices[device]?.device.seen ?? time
                state.devices[device]?.device.seen = max(seen, time)
            }
            for (passage, revision) in sightings.passed {
                state.stores[passage.store]?.passed[passage.device.id] = revision
            }
        }
    }

    func stores(of account: AccountID) -> [StoreSummary] {
        state.withLock { state in
            state.stores.filter { $0.key.account == account }.map { key, store in
                StoreSummary(
                    identifier: key.identifier, usage: store.state.usage,
                    position: store.state.lineage.position)
            }.sorted {
                $0.identifier.string.utf8.lexicographicallyPrecedes($1.identifier.string.utf8)
            }
        }
    }

    func read(_ store: StoreKey, since: Position?) -> StoreRead {
        state.withLock { state in
            let store = state.stores[store] ?? Store()
            let lineage = store.state.lineage
            guard let since else {
                let records = store.records.values.map(\.record).filter { $0.content != .deleted }
                return .changes(records, position: lineage.position, isWhole: true)
            }
            switch lineage.resumption(from: since) {
            case .otherHistory: return .otherHistory
            case .forgotten: return .forgotten
            case .after(let revision):
                let records = store.records.values.filter { $0.revision > revision }
                return .changes(
                    records.map(\.record), position: lineage.position, isWhole: false)
            }
        }
    }

    func commit(
        _ pushes: [WaitingPush], rules: CommitRules
    ) throws(StorageError) -> [PushOutcome] {
        if let failure = failure.withLock({ $0 }) { throw failure }
        return state.withLock { state in
            pushes.map { Self.commit($0, rules: rules, &state) }
        }
    }

    private static func commit(
        _ waiting: WaitingPush, rules: CommitRules, _ state: inout State
    ) -> PushOutcome {
        let isNew = state.stores[waiting.store] == nil
        var store = state.stores[waiting.store] ?? Store()
        let admitted: StoreState.Admitted
        do {
            admitted = try store.state.admit(
                waiting.push, records: store.records.mapValues(\.record), by: rules.admission,
                in: rules.epoch)
        } catch { return .clockAhead(error) }
        if !admitted.writes.isEmpty {
            let count = state.stores.keys.count { $0.account == waiting.store.account }
            guard !isNew || count < rules.storesPerAccountMax else { return .tooManyStores }
            for write in admitted.writes {
                store.records[write.key] = Entry(
                    record: write, revision: admitted.position.revision,
                    committed: rules.admission.now)
            }
            state.stores[waiting.store] = store
        }
        return .committed(
            CommittedPush(
                position: admitted.position, results: admitted.results, writes: admitted.writes,
                serverMilliseconds: rules.admission.now, deletions: store.state.deletions))
    }

    func forget(_ rule: ForgettingRule, now: Int64) -> Int {
        state.withLock { state in
            state.stores.keys.reduce(0) { $0 + Self.forget(rule, in: $1, now: now, &state) }
        }
    }

    private static func forget(
        _ rule: ForgettingRule, in key: StoreKey, now: Int64, _ state: inout State
    ) -> Int {
        guard var store = state.stores[key] else { return 0 }
        let deletions = store.records.values.filter { $0.record.content == .deleted }
            .sorted { $0.revision < $1.revision }
        let passed = store.passed.filter { device, _ in
            let signedIn = state.devices[DeviceName(account: key.account, id: device)]
            guard let signedIn, !signedIn.isRevoked else { return false }
            return signedIn.device.seen >= now - rule.liveMilliseconds
        }
        let known = deletions.map {
            ForgettingRule.Deletion(revision: $0.revision, committed: $0.committed)
        }
        guard let horizon = rule.horizon(of: known, passed: passed.values.min(), now: now)
        else { return 0 }
        let forgotten = deletions.filter { $0.revision <= horizon }
        for entry in forgotten { store.records[entry.record.key] = nil }
        store.state.forget(forgotten.map(\.record.stamp.timestamp), through: horizon)
        state.stores[key] = store
        return forgotten.count
    }
}
