// SPDX-License-Identifier: Apache-2.0

internal import NIOHTTP1
internal import Synchronization
internal import UbiquityCore
internal import UbiquityWire

/// Reads stores.
struct StoreRoutes: Sendable {
    let reader: StoreReader
    let firstRun: FirstRun
    /// Nil unless the server made its certificate itself.
    let house: HouseRoutes?
    let settings: ServerSettings

    /// Anybody may ask.
    @Sendable func config(_ exchange: Exchange) async throws -> Answer {
        var config = WireConfig(ServerConfig(settings))
        config.needsFirstAccount = firstRun.needsFirstAccount
        if settings.servesPage, let provider = settings.identity?.page {
            config.identityProvider.issuer = provider.issuer
            config.identityProvider.client = provider.client
        }
        if let house { config.house = try await house.message() }
        return Answer(config, try exchange.answerFormat)
    }

    /// A confined device only sees its stores.
    @Sendable func list(
        _ exchange: Exchange, _ rights: DeviceRights
    ) async throws -> Answer {
        let format = try exchange.answerFormat
        var list = WireStoreList()
        list.stores = try await reader.stores(of: rights.account)
            .filter { rights.reaches($0.identifier) }.map(WireStoreList.Store.init)
        return Answer(list, format)
    }

    /// Answers which devices have a store's changes, or those of one key. A confined device only
    /// sees itself.
    @Sendable func deliveries(
        _ exchange: Exchange, _ rights: DeviceRights,
        _ store: StoreReference
    ) async throws -> Answer {
        let format = try exchange.answerFormat
        let key = try exchange.request.query.key
        let saved = try exchange.request.query.saved
        reader.note(exchange.request.headers, rights)
        let now = settings.clock.now()
        var list = WireDeliveries()
        list.serverMilliseconds = UInt64(clamping: now)
        list.deliveries = try await reader.holdings(
            of: store, key: key, for: rights.reference, saved: saved
        ).deliveries
            .filter { device, _ in
                device.rights.reaches(store.identifier) && !device.rights.hasExpired(at: now)
                    && (!rights.isConfined || device.reference == rights.reference)
            }.map(WireDelivery.init)
        return Answer(list, format)
    }

    /// The changes of a store since a cursor, or the whole store.
    func changes(
        _ exchange: Exchange, _ rights: DeviceRights, _ store: StoreReference
    ) throws {
        let format = try exchange.answerFormat
        let since = try exchange.request.position(orLastEvent: false)
        let generation = try exchange.request.query.generation
        reader.note(exchange.request.headers, rights)
        try SealingRefusal.check(generation, in: rights.generation)
        try reader.answer(
            .message(format), of: store, since: since, isSaved: exchange.request.saysSaved,
            sealedWith: generation, for: rights,
            then: exchange.callback { exchange.answer($0.answer) })
    }

    /// The whole store, whatever it is sealed with, for a device that is about to seal it.
    func whole(
        _ exchange: Exchange, _ rights: DeviceRights, _ store: StoreReference
    ) throws {
        let format = try exchange.answerFormat
        try SealingRefusal.check(exchange.request.query.generation, in: rights.generation)
        try reader.answer(
            .message(format), of: store, since: nil, isSaved: false, sealedWith: nil, for: rights,
            then: exchange.callback { exchange.answer($0.answer) })
    }
}

extension ServerConfig {
    /// - Parameter account: Own limits of the device's account.
    init(_ settings: ServerSettings, _ account: AccountLimits = AccountLimits()) {
        self.init(
            serverMilliseconds: settings.clock.now(), limits: account.applied(to: settings.limits),
            allowance: settings.allowance,
            deletionsRememberedSeconds: ServerConstants.deletionsRememberedSeconds,
            keepAliveSeconds: Int64(settings.keepAliveSeconds))
    }
}

extension WireStoreList.Store {
    init(_ store: StoreSummary) {
        self.init()
        identifier = store.identifier.string
        keys = UInt64(clamping: store.usage.keys)
        bytes = UInt64(clamping: store.usage.bytes)
        cursor = store.position.cursor.text
        appName = store.appName ?? ""
    }
}

/// Reads stores on threads that may block, with accounts taking turns, and records what each device
/// says it has saved.
struct StoreReader: Sendable {
    let storage: any StoreStorage & HistoryStorage
    let threads: BlockingThreads
    let lastSeen: LastSeenBuffer
    let clock: ServerClock
    /// The budget of answers, from their beginning until they are sent.
    let shares: AccountShares
    /// See ``SealingRoutes/withdrawReset(_:_:)``.
    let withdrawReset: @Sendable (DeviceRights, Bytes32) -> Void

    /// The maximum size of the records in one answer, so that none is too large for a message or a
    /// buffer. The default limits of a store are far below.
    static let answerBytesMax = 256 << 20

    /// - Throws: ``Problem`` if the records are too much for one answer.
    static func checkAnswer(of records: [Record]) throws(Problem) {
        var bytes = 0
        for record in records {
            bytes += record.pushBytes
            guard bytes <= answerBytesMax else { throw .answerTooLarge }
        }
    }

    /// - Throws: ``StorageError``, ``Busy``.
    func stores(of account: AccountID) async throws -> [StoreSummary] {
        try await threads.run(for: account) { [storage] in try storage.stores(of: account) }
    }

    /// - Parameter saved: The cursor up to which the device that asks says it has saved the store.
    /// - Throws: ``StorageError``, ``Busy``.
    func holdings(
        of store: StoreReference, key: Key?, for device: DeviceReference, saved: Cursor?
    ) async throws -> StoreHoldings {
        try await threads.run(for: store.account) { [storage, lastSeen] in
            var holdings = try storage.holdings(of: store, key: key)
            if let passed = saved.flatMap(holdings.lineage.passed) {
                lastSeen.pass(passed, of: store, by: device)
            }
            lastSeen.complete(&holdings, of: store)
            return holdings
        }
    }

    /// Records the version of the device's library, if it has said. A device with the account's key
    /// withdraws an announced reset.
    func note(_ headers: HTTPHeaders, _ rights: DeviceRights) {
        if let version = headers.clientVersion { lastSeen.use(version, by: rights.reference) }
        if rights.announcedCheck != nil, let proof = try? headers.keyProof,
            rights.withdrawsReset(by: proof)
        {
            withdrawReset(rights, proof)
        }
    }

    /// Calls back, at once if nothing has changed, or on another thread, with ``Problem`` if the
    /// cursor is no longer valid or too much waits to be sent, or ``StorageError``.
    /// - Parameters:
    ///   - since: Nil for the whole store.
    ///   - isSaved: Whether the device says that it has saved everything up to there.
    ///   - generation: Of the key with which the store must be readable; nil for any.
    /// - Throws: ``Busy``.
    func answer(
        _ form: StoreAnswer.Form, of store: StoreReference, since: Position?, isSaved: Bool,
        sealedWith generation: UInt32?, for rights: DeviceRights,
        then: @escaping @Sendable (Result<StoreAnswer, any Error>) -> Void
    ) throws(Busy) {
        let begin = { @Sendable [self] (read: StoreRead, permit: AccountShares.Permit) throws in
            let changes = try changes(read, of: store)
            if let since, isSaved { lastSeen.pass(since, of: store, by: rights.reference) }
            return StoreAnswer.draft(form, changes.head, changes.records, permit)
        }
        if let since, let read = storage.unchanged(store, since: since, sealedWith: generation) {
            let permit = try shares.take(rights)
            return then(
                Result {
                    guard !permit.isFull else { throw Problem.answersInMemory }
                    var draft = try begin(read, permit)
                    guard let answer = try draft.encodeSlice() else { throw Problem.answerTooLarge }
                    return answer
                })
        }
        try answer(for: rights, then: then) { storage, permit in
            try begin(storage.read(store, since: since, sealedWith: generation), permit)
        }
    }

    /// The same for any other answer.
    /// - Parameter begin: Called on a thread that may block.
    /// - Throws: ``Busy``.
    func answer<Item, Finished: Sendable>(
        for rights: DeviceRights,
        then: @escaping @Sendable (Result<Finished, any Error>) -> Void,
        _ begin:
            @escaping @Sendable (any StoreStorage & HistoryStorage, AccountShares.Permit) throws ->
            AnswerDraft<Item, Finished>
    ) throws(Busy) {
        let permit = try shares.take(rights)
        // Shared by the slices, of which one runs at a time.
        let draft = Mutex<AnswerDraft<Item, Finished>?>(nil)
        threads.run(slicesFor: rights.account) { [storage] in
            try draft.withLock { draft in
                if draft == nil {
                    // Only now: others may have waited for the thread too.
                    guard !permit.isFull else { throw Problem.answersInMemory }
                    draft = try begin(storage, permit)
                }
                return try draft?.encodeSlice()
            }
        } then: {
            then($0)
        }
    }

    /// - Throws: ``Problem`` if the cursor is no longer valid.
    private func changes(
        _ read: StoreRead, of store: StoreReference
    ) throws -> (head: ChangeSet, records: [StoredRecord]) {
        switch read {
        case .unsealed: throw SealingRefusal.storeUnsealed
        case .changes(let records, let position, let isWhole, let horizon):
            let head = ChangeSet(
                records: [], cursor: position.cursor, serverMilliseconds: clock.now(),
                isWhole: isWhole, horizon: horizon)
            return (head, records)
        case .otherHistory:
            throw Problem(
                .cursorOtherHistory,
                "The cursor belongs to another history of this store. Pull the whole store.")
        case .compacted:
            throw Problem(
                .cursorCompacted, "Deletions since the cursor are forgotten. Pull the whole store.")
        }
    }
}
