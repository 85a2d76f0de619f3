// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization
internal import UbiquityCore

internal import struct UbiquitySimulation.VirtualHistory

@testable internal import UbiquityServer

/// The contract of a storage in its plainest form: everything in one value behind one lock. It may be
/// that of several nodes, and may break the contract on purpose.
final class MemoryServerStorage: ServerStorage {
    typealias Observer = @Sendable (StorageNews) -> Void

    /// The database that all nodes share.
    private final class Database: Sendable {
        let state = Mutex(State())
        /// The last change, for faults: the node that made it, and the state before.
        let last = Mutex<(node: ObjectIdentifier, before: State)?>(nil)
        let observers = Mutex<[Observer]>([])
        let clock = Mutex<Int64?>(nil)
    }

    private struct Store {
        var state = StoreState()
        var records: [Key: Entry] = [:]
        var passed: [DeviceID: Int64] = [:]
        var folded: [FoldedIncrement.ID: (increment: FoldedIncrement, committed: Int64)] = [:]
        var history = VirtualHistory()

        mutating func compact(_ rule: CompactionRule, passed: Int64?, running: Int64) -> Int {
            let deletions = records.values.filter { $0.record.content == .deleted }
                .sorted { $0.revision < $1.revision }
            let known = deletions.map {
                CompactionRule.Tombstone(
                    revision: $0.revision, committed: $0.committed,
                    timestamp: $0.record.stamp.timestamp,
                    weight: CompactionRule.Tombstone.weight(of: $0.record.key))
            }
            let dropped = state.compact(known, by: rule, passed: passed, running: running)
            for entry in deletions.prefix(dropped?.count ?? 0) {
                records[entry.record.key] = nil
                history.compact(entry.record.key)
            }
            return dropped?.count ?? 0
        }

        mutating func compactFolded(_ rule: CompactionRule, running: Int64) {
            let known = folded.values.sorted { $0.increment.mark < $1.increment.mark }
            let dropped = state.compactFolded(
                known.map {
                    CompactionRule.Tombstone(
                        revision: $0.increment.mark.revision, committed: $0.committed,
                        timestamp: $0.increment.timestamp)
                }, by: rule, running: running)
            for kept in known.prefix(dropped?.count ?? 0) { folded[kept.increment.id] = nil }
        }
    }

    private struct Entry {
        var record: Record
        var revision: Int64
        var committed: Int64
    }

    private struct SignedIn {
        var device: Device
        var credential: SecretHash
        var adder: DeviceID?
    }

    private struct MadeCode {
        var code: NewCode
        var maker: DeviceID?
    }

    private struct WaitingRequest {
        var request: SignInRequest
        var decision: SignInDecision?
        var maker: DeviceID?
    }

    private struct State {
        var operatorHash: SecretHash?
        var accounts: [AccountID: Account] = [:]
        var codes: [SecretHash: MadeCode] = [:]
        var requests: [SecretHash: WaitingRequest] = [:]
        var identities: [Identity: AccountID] = [:]
        var apps: [StoreIdentifier: RegisteredApp] = [:]
        var audit: [AuditEntry] = []
        var lastAudit: Int64 = 0
        var limits: [String: String] = [:]
        var devices: [DeviceReference: SignedIn] = [:]
        var stores: [StoreReference: Store] = [:]
        var running: Int64 = 0
        /// The node that does the chores, and until when.
        var lease: (holder: ObjectIdentifier, end: ContinuousClock.Instant)?

        func has(_ name: AccountName) -> Bool {
            accounts.values.contains { $0.name == name }
        }

        mutating func record(
            _ action: AuditAction, _ account: AccountID?, _ device: DeviceID?, _ now: Int64,
            _ actor: AuditActor
        ) {
            record(AuditEntry(AuditEvent(action, of: account, device, by: actor), at: now))
        }

        mutating func record(_ entry: AuditEntry) {
            let recent = audit.reversed().filter {
                $0.event.action == entry.event.action && $0.event.account == entry.event.account
            }
            if let sum = AuditRule.fold(entry, into: recent) {
                audit[audit.firstIndex { $0.number == sum.number }!] = sum
                return
            }
            var entry = entry
            lastAudit += 1
            entry.number = lastAudit
            audit.append(entry)
        }

        mutating func insert(
            _ account: Account, accountsMax: Int, by actor: AuditActor
        ) throws(StorageError) {
            guard accounts.count < accountsMax else { throw .tooMany("accounts") }
            accounts[account.id] = account
            record(.accountCreated, account.id, nil, account.createdMilliseconds, actor)
        }

        mutating func account(
            of identity: Identity, _ preferredName: AccountName?, accountsMax: Int, now: Int64,
            by actor: AuditActor
        ) throws(StorageError) -> Account {
            if let known = identities[identity].flatMap({ accounts[$0] }) { return known }
            let id = AccountID.random()
            let free = preferredName.flatMap { has($0) ? nil : $0 }
            let account = Account(
                id: id, name: free ?? AccountName(id.string)!, createdMilliseconds: now)
            try insert(account, accountsMax: accountsMax, by: actor)
            identities[identity] = id
            return account
        }

        mutating func insert(
            _ device: NewDevice, _ id: DeviceID, of account: AccountID, _ now: Int64
        ) throws(StorageError) -> Device {
            let valid = devices.values.filter {
                !$0.device.rights.hasExpired(at: now) && $0.device.reference.account == account
            }
            try device.checkRoom(
                besides: valid.count, added: valid.count { $0.adder != nil })
            let reference = DeviceReference(account: account, id: id)
            let new = Device(device, reference, now: now)
            devices[reference] = SignedIn(
                device: new, credential: device.credential, adder: device.adder)
            record(.deviceSignedIn, account, id, now, .device(id))
            return new
        }

        mutating func removeCodes(expiredBy now: Int64) {
            codes = codes.filter { $0.value.code.expiresMilliseconds > now }
            requests = requests.filter { $0.value.request.expiresMilliseconds > now }
        }

        func checkMaker(_ actor: AuditActor, of account: AccountID) throws(StorageError) {
            guard accounts[account] != nil else { throw .noSuchAccount }
            try checkActor(actor, of: account)
        }

        func checkActor(_ actor: AuditActor, of account: AccountID) throws(StorageError) {
            guard let id = actor.device else { return }
            guard devices[DeviceReference(account: account, id: id)] != nil else {
                throw .noSuchDevice
            }
        }

        /// The device that made a code or approved a request, if it is confined.
        func adder(_ maker: DeviceID?, _ account: AccountID) -> DeviceID? {
            let device = maker.flatMap { devices[DeviceReference(account: account, id: $0)] }
            return device?.device.rights.isConfined == true ? maker : nil
        }

        /// Removes a device, and what ends with it.
        /// - Returns: What was there.
        mutating func removeAll(
            endingWith device: DeviceReference, _ action: AuditAction, _ now: Int64,
            _ actor: AuditActor, keepsCodes: Bool = false, keepsAdded: Bool = false
        ) -> [DeviceReference] {
            var adders: [DeviceID: DeviceID] = [:]
            for (name, signedIn) in devices where name.account == device.account && !keepsAdded {
                adders[name.id] = signedIn.adder
            }
            return PairingRule.ending(with: [device.id], adders)
                .map { DeviceReference(account: device.account, id: $0) }
                .filter { remove($0, action, now, actor, keepsCodes: keepsCodes) }
        }

        mutating func remove(
            _ device: DeviceReference, _ action: AuditAction, _ now: Int64, _ actor: AuditActor,
            keepsCodes: Bool
        ) -> Bool {
            guard devices.removeValue(forKey: device) != nil else { return false }
            if !keepsCodes {
                codes = codes.filter {
                    $0.value.maker != device.id || $0.value.code.account != device.account
                }
            }
            requests = requests.filter { request in
                guard case .approved(device.account, _)? = request.value.decision else {
                    return true
                }
                return request.value.maker != device.id
            }
            record(action, device.account, device.id, now, actor)
            return true
        }

        /// With the limits of its account.
        func device(_ signedIn: SignedIn) -> Device {
            var device = signedIn.device
            device.rights.limits = accounts[device.rights.account]?.limits ?? AccountLimits()
            return device
        }
    }

    private let database: Database
    let isShared: Bool
    private let fault: StorageFault?
    /// The error that commits throw.
    let failure = Mutex<StorageError?>(nil)
    /// How many credentials each look-up was for.
    let lookUps = Mutex<[Int]>([])
    /// How often a store was read.
    let reads = Mutex(0)
    /// The stores of each group of pushes that was committed at once.
    let groups = Mutex<[[StoreReference]]>([])

    init(isShared: Bool = false, fault: StorageFault? = nil) {
        (database, self.isShared, self.fault) = (Database(), isShared, fault)
    }

    /// Another node of the same storage.
    init(nodeOf other: MemoryServerStorage) {
        (database, isShared, fault) = (other.database, other.isShared, other.fault)
    }

    var commitLanes: Int { isShared ? 2 : 1 }

    func observe(_ observer: @escaping Observer) {
        guard isShared else { return }
        database.observers.withLock { $0.append(observer) }
        observer(.anything)
    }

    private func announce(_ news: StorageNews) {
        guard isShared else { return }
        for observer in database.observers.withLock(\.self) { observer(news) }
    }

    /// What the storage's clock shows.
    func setClock(_ milliseconds: Int64) { database.clock.withLock { $0 = milliseconds } }
    func clock() -> Int64? { database.clock.withLock(\.self) }

    func lease(for milliseconds: Int64) -> Bool {
        database.state.withLock { state in
            let now = ContinuousClock.now
            if let lease = state.lease, lease.end > now, lease.holder != ObjectIdentifier(self),
                fault != .leasesToEverybody
            {
                return false
            }
            state.lease = (ObjectIdentifier(self), now + .milliseconds(milliseconds))
            return true
        }
    }

    func operatorHash() -> SecretHash? { database.state.withLock { $0.operatorHash } }
    func setOperatorHash(_ hash: SecretHash, recordedAt now: Int64?) {
        database.state.withLock { state in
            state.operatorHash = hash
            if let now { state.record(AuditEntry(.credentialReplacement, at: now)) }
        }
    }
    func close() {}

    func createAccount(
        _ account: Account, accountsMax: Int, by actor: AuditActor
    ) throws(StorageError) {
        try change { state throws(StorageError) in
            let seen = fault == .decidesBeforeLocking ? outdated(state) : state
            guard !seen.has(account.name) else { throw .accountExists }
            try state.insert(account, accountsMax: accountsMax, by: actor)
        }
    }

    func account(named name: AccountName) -> Account? {
        accounts().first { $0.name == name }
    }

    func account(_ id: AccountID) -> Account? { database.state.withLock { $0.accounts[id] } }

    func accounts() -> [Account] {
        database.state.withLock { state in
            state.accounts.values.sorted { Self.isLess($0.name.string, $1.name.string) }
        }
    }

    func accounts(
        after name: AccountName?, containing part: String?, max: Int
    ) -> [Account] {
        let found = accounts().filter { account in
            Self.isLess(name?.string ?? "", account.name.string)
                && (part.map { Array(account.name.string.utf8).contains(Array($0.utf8)) } ?? true)
        }
        return Array(found.prefix(max))
    }

    private static func isLess(_ a: String, _ b: String) -> Bool {
        a.utf8.lexicographicallyPrecedes(b.utf8)
    }

    func rename(
        _ account: AccountID, to name: AccountName, now: Int64, by actor: AuditActor
    ) throws(StorageError) {
        try database.state.withLock { state throws(StorageError) in
            guard let old = state.accounts[account] else { throw .noSuchAccount }
            guard old.name != name else { return }
            guard !state.has(name) else { throw .accountExists }
            state.accounts[account]?.name = name
            state.record(.accountRenamed, account, nil, now, actor)
        }
    }

    func limit(
        _ account: AccountID, to limits: AccountLimits, now: Int64, by actor: AuditActor
    ) throws(StorageError) {
        try database.state.withLock { state throws(StorageError) in
            guard let old = state.accounts[account] else { throw .noSuchAccount }
            guard old.limits != limits else { return }
            state.accounts[account]?.limits = limits
            state.record(AuditEntry(AuditEvent(limits, of: account, by: actor), at: now))
        }
        announce(.accountChanged(account))
    }

    func erase(
        _ account: AccountID, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        let wasThere = try database.state.withLock { state throws(StorageError) in
            guard state.accounts[account] != nil else { return false }
            if fault != .actsOfRevokedDevices { try state.checkActor(actor, of: account) }
            state.accounts[account] = nil
            state.devices = state.devices.filter { $0.key.account != account }
            state.codes = state.codes.filter { $0.value.code.account != account }
            state.requests = state.requests.filter { request in
                if case .approved(account, _)? = request.value.decision { false } else { true }
            }
            state.identities = state.identities.filter { $0.value != account }
            if fault != .keepsErasedStores {
                state.stores = state.stores.filter { $0.key.account != account }
            }
            state.record(.accountErased, account, nil, now, actor)
            return true
        }
        if wasThere { announce(.accountChanged(account)) }
        return wasThere
    }

    func scrub(pacedAt uptime: Int64?) {}

    func eraseRest(for milliseconds: Int64) -> Bool { false }

    func addCode(_ code: NewCode, now: Int64, by actor: AuditActor) throws(StorageError) {
        try database.state.withLock { state throws(StorageError) in
            try state.checkMaker(actor, of: code.account)
            let count = state.codes.values.count {
                $0.code.account == code.account && $0.maker == actor.device
                    && $0.code.expiresMilliseconds > now
            }
            guard actor.device == nil || count < PairingRule.codesPerDeviceMax else {
                throw .tooManyWaiting("unused codes")
            }
            state.codes[code.hash] = MadeCode(code: code, maker: actor.device)
            state.record(.codeMade, code.account, nil, now, actor)
        }
    }

    func addFirstCode(_ code: NewCode, now: Int64) -> Bool {
        database.state.withLock { state in
            guard state.accounts.isEmpty else { return false }
            while state.codes.count >= PairingRule.firstCodesMax,
                let oldest = state.codes.min(by: {
                    $0.value.code.expiresMilliseconds < $1.value.code.expiresMilliseconds
                })
            {
                state.codes[oldest.key] = nil
            }
            state.codes[code.hash] = MadeCode(code: code, maker: nil)
            return true
        }
    }

    func redeem(
        _ code: SecretHash, by device: NewDevice, naming name: AccountName?, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device) {
        try database.state.withLock { state throws(StorageError) in
            guard let made = state.codes[code], made.code.expiresMilliseconds > now else {
                throw .codeInvalid
            }
            let found = made.code
            var device = try device.on(found.terms, now: now)
            device.adder = state.adder(made.maker, found.account)
            if let name {
                guard state.accounts.isEmpty else { throw .codeInvalid }
                let account = Account(id: found.account, name: name, createdMilliseconds: now)
                let id = DeviceID.random()
                try state.insert(account, accountsMax: 1, by: .device(id))
                let signedIn = try state.insert(device, id, of: account.id, now)
                state.codes[code] = nil
                return (account, signedIn)
            }
            guard let account = state.accounts[found.account] else { throw .codeInvalid }
            let signedIn = try state.insert(device, .random(), of: account.id, now)
            if fault != .redeemsCodesAgain { state.codes[code] = nil }
            return (account, signedIn)
        }
    }

    func addRequest(_ request: SignInRequest, now: Int64) throws(StorageError) {
        try database.state.withLock { state throws(StorageError) in
            let addresses = state.requests.values
                .filter { $0.decision == nil && $0.request.expiresMilliseconds > now }
                .map(\.request.address)
            guard PairingRule.admits(requestFrom: request.address, besides: addresses) else {
                throw .tooManyWaiting("devices waiting to sign in")
            }
            state.requests[request.secret] = WaitingRequest(request: request)
        }
    }

    func request(userCode: SecretHash, now: Int64) -> SignInRequest? {
        database.state.withLock { Self.request(userCode, now, isDecided: false, $0) }
    }

    private static func request(
        _ userCode: SecretHash, _ now: Int64, isDecided: Bool, _ state: State
    ) -> SignInRequest? {
        state.requests.values.first {
            $0.request.userCode == userCode && $0.request.expiresMilliseconds > now
                && (isDecided || $0.decision == nil)
        }?.request
    }

    func decide(
        _ userCode: SecretHash, _ decision: SignInDecision, now: Int64, by actor: AuditActor
    ) throws(StorageError) {
        try database.state.withLock { state throws(StorageError) in
            let request = Self.request(
                userCode, now, isDecided: fault == .decidesAgain, state)
            guard let request else { throw .noSuchRequest }
            if let account = decision.account { try state.checkMaker(actor, of: account) }
            state.requests[request.secret]?.decision = decision
            state.requests[request.secret]?.maker = actor.device
            state.record(
                AuditEntry(decision.event(about: request.address, by: actor), at: now))
        }
    }

    func redeem(
        request secret: SecretHash, by device: NewDevice, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device) {
        try database.state.withLock { state throws(StorageError) in
            guard let found = state.requests[secret], found.request.expiresMilliseconds > now
            else { throw .codeInvalid }
            switch found.decision {
            case nil: throw .signInPending
            case .denied: throw .signInDenied
            case .approved(let id, let terms):
                guard let account = state.accounts[id] else { throw .codeInvalid }
                var device = try device.on(terms, now: now)
                device.displayName = found.request.displayName
                device.adder = state.adder(found.maker, id)
                let signedIn = try state.insert(device, .random(), of: id, now)
                if fault != .redeemsRequestsAgain { state.requests[secret] = nil }
                return (account, signedIn)
            }
        }
    }

    func removeCodes(expiredBy now: Int64) {
        database.state.withLock { $0.removeCodes(expiredBy: now) }
    }

    func signIn(
        _ identity: Identity, preferredName: AccountName?, accountsMax: Int,
        by device: NewDevice, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device) {
        try database.state.withLock { state throws(StorageError) in
            var next = state
            let id = DeviceID.random()
            let account = try next.account(
                of: identity, preferredName, accountsMax: accountsMax, now: now, by: .device(id))
            let device = try next.insert(device, id, of: account.id, now)
            state = next
            return (account, device)
        }
    }

    func rights(
        of credentials: [SecretHash]
    ) throws(StorageError) -> [Result<DeviceRights?, StorageError>] {
        if let failure = failure.withLock({ $0 }) { throw failure }
        lookUps.withLock { $0.append(credentials.count) }
        return database.state.withLock { state in
            credentials.map { credential in
                let found = state.devices.values.first { $0.credential == credential }
                return .success(found.map { state.device($0).rights })
            }
        }
    }

    func devices(of account: AccountID) -> [Device] {
        database.state.withLock { state in
            state.devices.values.filter { $0.device.reference.account == account }
                .map { state.device($0) }.sorted { $0.createdMilliseconds < $1.createdMilliseconds }
        }
    }

    func rename(
        _ device: DeviceReference, displayName: String, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        try database.state.withLock { state throws(StorageError) in
            try state.checkActor(actor, of: device.account)
            guard state.devices[device] != nil else { return false }
            state.devices[device]?.device.displayName = displayName
            state.record(.deviceRenamed, device.account, device.id, now, actor)
            return true
        }
    }

    func revoke(
        _ device: DeviceReference, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Set<DeviceReference> {
        let removed = try change { state throws(StorageError) in
            try state.checkActor(actor, of: device.account)
            return state.removeAll(
                endingWith: device, .deviceRevoked, now, actor,
                keepsCodes: fault == .keepsCodesOfRevokedDevices,
                keepsAdded: fault == .keepsWhatRevokedDevicesAdded)
        }
        for device in removed { announce(.revoked(device)) }
        return Set(removed)
    }

    func removeDevices(expiredBy time: Int64, now: Int64) -> Int {
        database.state.withLock { state in
            let expired = state.devices.values.map(\.device.rights).filter {
                $0.hasExpired(at: time)
            }
            return expired.reduce(0) { count, rights in
                count
                    + state.removeAll(
                        endingWith: rights.reference, .deviceRemoved, now, .housekeeping
                    ).count
            }
        }
    }

    func apps() -> [RegisteredApp] {
        database.state.withLock { state in
            state.apps.values.sorted { Self.isLess($0.identifier.string, $1.identifier.string) }
        }
    }

    func register(
        _ app: RegisteredApp, appsMax: Int, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        let isNew = try database.state.withLock { state throws(StorageError) in
            guard state.apps[app.identifier] == nil else { return false }
            guard state.apps.count < appsMax else { throw .tooMany("registered apps") }
            state.apps[app.identifier] = app
            state.record(.appRegistered, nil, nil, app.registered, actor)
            return true
        }
        if isNew { announce(.appsChanged) }
        return isNew
    }

    func removeApp(_ identifier: StoreIdentifier, now: Int64, by actor: AuditActor) -> Bool {
        let wasThere = database.state.withLock { state in
            guard state.apps.removeValue(forKey: identifier) != nil else { return false }
            state.record(.appRemoved, nil, nil, now, actor)
            return true
        }
        if wasThere { announce(.appsChanged) }
        return wasThere
    }

    func auditEntries(
        before number: Int64?, _ filter: AuditFilter, max: Int
    ) -> [AuditEntry] {
        database.state.withLock { state in
            let found = state.audit.reversed()
                .filter { $0.number < number ?? .max && filter.admits($0.event) }
            return Array(found.prefix(max))
        }
    }

    func record(_ entries: [AuditEntry]) {
        database.state.withLock { state in
            for entry in entries { state.record(entry) }
        }
    }

    func recordChanges(ofLimits limits: [String: String], now: Int64) {
        database.state.withLock { state in
            for event in AuditEvent.changes(of: state.limits, to: limits) {
                state.record(AuditEntry(event, at: now))
            }
            state.limits.merge(limits) { $1 }
        }
    }

    func auditSurplus(by rule: AuditRule) -> [Int64] {
        database.state.withLock { state in
            rule.surplus(
                of: state.audit.map {
                    AuditRule.Line(
                        number: $0.number, action: $0.event.action, account: $0.event.account)
                })
        }
    }

    func removeAuditEntries(_ numbers: [Int64]) {
        database.state.withLock { state in state.audit.removeAll { numbers.contains($0.number) } }
    }

    func note(_ lastSeen: LastSeenUpdate) {
        database.state.withLock { state in
            for (device, time) in lastSeen.seenMilliseconds {
                let seenMilliseconds = state.devices[device]?.device.seenMilliseconds ?? time
                state.devices[device]?.device.seenMilliseconds = max(seenMilliseconds, time)
            }
            for (deviceStore, position) in lastSeen.passed {
                guard state.devices[deviceStore.device] != nil,
                    let lineage = state.stores[deviceStore.store]?.state.lineage,
                    lineage.contains(position)
                else { continue }
                state.stores[deviceStore.store]?.passed[deviceStore.device.id] = position.revision
            }
            for (device, clock) in lastSeen.clocks { state.devices[device]?.device.clock = clock }
            for (device, version) in lastSeen.versions {
                state.devices[device]?.device.version = version
            }
        }
    }

    func holdings(of store: StoreReference, key: Key?) -> StoreHoldings {
        let devices = self.devices(of: store.account)
        return database.state.withLock { state in
            let found = state.stores[store] ?? Store()
            return StoreHoldings(
                devices: devices,
                entries: found.records.filter { key == nil || $0.key.whole == key }.values.map {
                    DeliveryRule.Item(revision: $0.revision, author: $0.record.stamp.device)
                }, passed: found.passed,
                lineage: found.state.lineage)
        }
    }

    func stores(of account: AccountID) -> [StoreSummary] {
        database.state.withLock { state in
            state.stores.filter { $0.key.account == account }.map { key, store in
                StoreSummary(
                    identifier: key.identifier, usage: store.state.usage,
                    position: store.state.lineage.position)
            }.sorted {
                $0.identifier.string.utf8.lexicographicallyPrecedes($1.identifier.string.utf8)
            }
        }
    }

    func positions(of stores: [StoreReference]) -> [StoreReference: Position] {
        database.state.withLock { state in
            stores.reduce(into: [:]) { $0[$1] = state.stores[$1]?.state.lineage.position }
        }
    }

    func signedIn(among devices: Set<DeviceReference>) -> Set<DeviceReference> {
        database.state.withLock { state in devices.filter { state.devices[$0] != nil } }
    }

    func unchanged(_ store: StoreReference, since position: Position) -> StoreRead? {
        let read = read(store, since: position)
        guard case .changes([], position: _, isWhole: _, horizon: _) = read else { return nil }
        return read
    }

    func read(_ reference: StoreReference, since: Position?) -> StoreRead {
        reads.withLock { $0 += 1 }
        return database.state.withLock { state in
            var store = state.stores[reference] ?? Store()
            if fault == .tearsReads {
                store.records = outdated(state).stores[reference]?.records ?? [:]
            }
            let lineage = store.state.lineage
            guard let since else {
                let records = store.records.values.map(\.record).filter { $0.content != .deleted }
                return .changes(
                    records.map(StoredRecord.init), position: lineage.position, isWhole: true,
                    horizon: store.state.horizon)
            }
            switch lineage.resumption(from: since) {
            case .otherHistory: return .otherHistory
            case .compacted: return .compacted
            case .after(let revision):
                let records = store.records.values.filter { $0.revision > revision }
                return .changes(
                    records.map { StoredRecord($0.record) }, position: lineage.position,
                    isWhole: false,
                    horizon: store.state.horizon)
            }
        }
    }

    func commit(
        _ pushes: [PendingPush], rules: CommitRules
    ) throws(StorageError) -> [Result<CommittedPush, PushRefusal>] {
        if let failure = failure.withLock({ $0 }) { throw failure }
        groups.withLock { $0.append(pushes.map(\.store)) }
        let results =
            switch fault {
            case .answersEarly: commitLater(pushes, rules)
            case .losesUpdates: commitOnOutdatedStores(pushes, rules)
            case .pushesAfterRevocation: commitWithRightsOfBefore(pushes, rules)
            default: change { commit(pushes, rules, &$0) }
            }
        for (push, result) in zip(pushes, results) {
            guard let commit = try? result.get(), !commit.writes.isEmpty else { continue }
            announce(.committed(push.store, commit.position))
        }
        return results
    }

    private func commit(
        _ pushes: [PendingPush], _ rules: CommitRules, _ state: inout State
    ) -> [Result<CommittedPush, PushRefusal>] {
        pushes.enumerated().map { number, push in
            Result { () throws(PushRefusal) in
                try commit(push, rules: rules, &state, isFirst: number == 0)
            }
        }
    }

    // MARK: Faults

    /// Changes the state, and remembers the one before if there is a fault that needs it.
    private func change<Result, Failure>(
        _ body: (inout State) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try database.state.withLock { state throws(Failure) in
            guard fault != nil else { return try body(&state) }
            let before = state
            let result = try body(&state)
            database.last.withLock { $0 = (ObjectIdentifier(self), before) }
            return result
        }
    }

    /// The state without the last change, if that was another node's: what a node sees that looks
    /// before it locks, whenever the other one does.
    private func outdated(_ state: State) -> State {
        database.last.withLock { last in
            guard let last, last.node != ObjectIdentifier(self) else { return state }
            return last.before
        }
    }

    private func spoil(_ push: inout CommittedPush, isFirst: Bool) {
        switch fault {
        case .losesVersionsOfGroups: if !isFirst { push.history.replaced = [:] }
        case .keepsNothingThatLost: push.history.passing.removeAll(where: \.isLost)
        case .keepsAll: push.history.unkept = []
        default: break
        }
    }

    private func commitLater(
        _ pushes: [PendingPush], _ rules: CommitRules
    ) -> [Result<CommittedPush, PushRefusal>] {
        var copy = database.state.withLock(\.self)
        Thread.detachNewThread { [self] in
            usleep(50_000)
            database.state.withLock { _ = commit(pushes, rules, &$0) }
        }
        return commit(pushes, rules, &copy)
    }

    private func commitOnOutdatedStores(
        _ pushes: [PendingPush], _ rules: CommitRules
    ) -> [Result<CommittedPush, PushRefusal>] {
        change { state in
            state.stores = outdated(state).stores
            return commit(pushes, rules, &state)
        }
    }

    private func commitWithRightsOfBefore(
        _ pushes: [PendingPush], _ rules: CommitRules
    ) -> [Result<CommittedPush, PushRefusal>] {
        let (refusals, areOutdated) = database.state.withLock { state in
            let seen = outdated(state)
            let refusals = pushes.map { refusal(of: $0, rules, seen) }
            return (refusals, refusals != pushes.map { refusal(of: $0, rules, state) })
        }
        // The revocation returns meanwhile.
        if areOutdated { usleep(100_000) }
        return change { state in
            zip(pushes, refusals).map { push, refusal in
                if let refusal { return .failure(refusal) }
                var push = push
                push.rights = nil
                return Result { () throws(PushRefusal) in
                    try commit(push, rules: rules, &state)
                }
            }
        }
    }

    // MARK: Commits

    private func refusal(
        of push: PendingPush, _ rules: CommitRules, _ state: State
    ) -> PushRefusal? {
        rules.refusal(of: push) { state.devices[$0] != nil }
    }

    private func commit(
        _ waiting: PendingPush, rules: CommitRules, _ state: inout State, isFirst: Bool = true
    ) throws(PushRefusal) -> CommittedPush {
        if let refusal = refusal(of: waiting, rules, state) { throw refusal }
        let rules = rules.of(waiting)
        let isNew = state.stores[waiting.store] == nil
        var store = state.stores[waiting.store] ?? Store()
        let records = store.records.mapValues(\.record)
        guard rules.mayAnswer(waiting.push, over: records) else { throw .answerTooLarge }
        if store.state.history.exceeds(rules.admission.history, byFar: false) {
            prune(rules.admission.historyRule, &store)
        }
        var admitted: CommittedPush
        let queries = waiting.push.foldedQueries(records)
        let folded = store.folded.values.map(\.increment).filter { increment in
            queries.contains { $0.matches(increment) }
        }
        do {
            admitted = try store.state.admit(
                waiting.push, records: records, folded: folded, by: rules.admission,
                in: waiting.store.epoch(inRun: rules.run ?? 1))
        } catch { throw .clockAhead(error) }
        if !admitted.writes.isEmpty {
            guard state.accounts[waiting.store.account] != nil else { throw .noSuchAccount }
            let count = state.stores.keys.count { $0.account == waiting.store.account }
            guard !isNew || count < rules.storesPerAccountMax else { throw .tooManyStores }
            if fault == .repeatsRevisions, admitted.position.revision > 1 {
                store.state.lineage = Lineage(
                    spans: store.state.lineage.spans,
                    revision: store.state.lineage.revision - 1)
                admitted.position = store.state.lineage.position
            }
            if fault == .countsWrong { store.state.usage.bytes += 1 }
            for write in admitted.writes
            where fault != .dropsTombstones || write.content != .deleted {
                store.records[write.key] = Entry(
                    record: write, revision: admitted.position.revision,
                    committed: state.running)
            }
            for increment in admitted.folded {
                store.folded[increment.id] = (increment, state.running)
            }
        }
        spoil(&admitted, isFirst: isFirst)
        store.history.take(admitted)
        if state.accounts[waiting.store.account] != nil, !isNew || !admitted.writes.isEmpty {
            state.stores[waiting.store] = store
        }
        return admitted
    }

    func addRunningTime(_ milliseconds: Int64) {
        database.state.withLock { $0.running += milliseconds }
    }

    var isFull: Bool { false }
    func findRoom() -> Bool { false }
    func emptyLog(pacedAt uptime: Int64) {}

    func storesWithDeletions() -> [StoreReference] {
        database.state.withLock { state in
            state.stores.filter { $0.value.state.deletions > 0 || $0.value.state.folded > 0 }.map(
                \.key)
        }
    }

    func versions(
        of reference: StoreReference, key: Key?, currentOnly: Bool,
        _ choose: (StoreState, [HistoryRule.Line]) -> [Int]
    ) -> [StoredVersion] {
        database.state.withLock { state in
            let store = state.stores[reference] ?? Store()
            let lines = store.history.lines(of: key).filter {
                !currentOnly || $0.line.ended == nil
            }
            return choose(store.state, lines.map(\.line)).map { place in
                let record = Record(
                    key: lines[place].line.key, content: lines[place].content,
                    stamp: lines[place].line.stamp)
                return StoredVersion(line: lines[place].line, value: StoredRecord(record).value)
            }
        }
    }

    func storesToPrune(_ rule: HistoryRule) -> [StoreReference] {
        database.state.withLock { state in
            state.stores.filter { store, stored in
                let limits = state.accounts[store.account]?.limits ?? AccountLimits()
                return stored.state.history.isDue(within: rule.of(limits).limits, now: rule.now)
            }.map(\.key)
        }
    }

    func pruneHistory(_ rule: HistoryRule, of store: StoreReference) -> Int {
        database.state.withLock { state in
            guard var found = state.stores[store] else { return 0 }
            let limits = state.accounts[store.account]?.limits ?? AccountLimits()
            let count = prune(rule.of(limits), &found)
            state.stores[store] = found
            return count
        }
    }

    @discardableResult
    private func prune(_ rule: HistoryRule, _ store: inout Store) -> Int {
        let floor = store.state.history.floor
        let count = store.history.prune(rule, &store.state.history)
        if fault == .keepsFloor { store.state.history.floor = floor }
        return count
    }

    func compact(
        _ rule: CompactionRule, folded: CompactionRule, in key: StoreReference, now: Int64
    ) -> Int {
        database.state.withLock { state in
            guard var store = state.stores[key] else { return 0 }
            let live = store.passed.filter { device, _ in
                let signedIn = state.devices[DeviceReference(account: key.account, id: device)]
                guard let signedIn else { return false }
                return signedIn.device.seenMilliseconds >= now - rule.liveMilliseconds
            }
            let count = store.compact(rule, passed: live.values.min(), running: state.running)
            store.compactFolded(folded, running: state.running)
            state.stores[key] = store
            return count
        }
    }
}

extension AuditFilter {
    func admits(_ event: AuditEvent) -> Bool {
        (action.map { $0 == event.action } ?? true) && (account.map { $0 == event.account } ?? true)
    }
}
