// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
internal import Synchronization
internal import UbiquityCore
internal import UbiquityWire

/// Exports everything in an account as a file, for the person and for the operator.
struct ExportRoutes: Sendable {
    let storage: any ServerStorage
    let writer: BlockingThreads
    let readers: BlockingThreads
    var gate: Gate
    let settings: ServerSettings
    /// One export of an account at a time. What they hold in memory is not the answers': a slice each,
    /// which is gone before the next one is read, so nobody waits for long.
    var shares: AccountShares
    /// Nil where nobody else waits.
    var pace: TrafficPace.Rule? = .export

    init(
        storage: any ServerStorage, writer: BlockingThreads, readers: BlockingThreads, gate: Gate,
        settings: ServerSettings
    ) {
        self.storage = storage
        self.writer = writer
        self.readers = readers
        self.gate = gate
        self.settings = settings
        shares = Self.shares(settings)
    }

    /// The same for the data folder's owner, whom nobody else's exports keep waiting.
    func inFolder(_ gate: Gate) -> ExportRoutes {
        var routes = self
        (routes.gate, routes.pace, routes.shares) = (gate, nil, Self.shares(settings))
        return routes
    }

    private static func shares(_ settings: ServerSettings) -> AccountShares {
        AccountShares(
            of: ByteBudget(max: settings.exportsBytesMax), placesMax: 1, bytesMin: 1)
    }

    @Sendable func own(
        _ exchange: Exchange, _ rights: DeviceRights
    ) async throws -> Answer {
        try await answer(exchange, .wholeAccount, by: .device(rights.reference.id)) {
            [storage] in
            try storage.account(rights.account)
        }
    }

    @Sendable func named(_ exchange: Exchange) async throws -> Answer {
        let name = try exchange.accountName()
        return try await answer(exchange, .operators, by: gate.operatorActor) { [storage] in
            try storage.account(named: name)
        }
    }

    private func answer(
        _ exchange: Exchange, _ operation: ServerOperation, by actor: AuditActor,
        find: @escaping @Sendable () throws -> Account?
    ) async throws -> Answer {
        guard exchange.request.headers.accepts(Self.mediaType) else {
            throw Problem(.notAcceptable, "The answer is available only as application/json.")
        }
        let history: HistoryRule? =
            switch exchange.request.query.text("with_history") {
            case nil, "false": nil
            case "true": HistoryRule(settings.history, now: settings.clock.now())
            default: throw Problem.malformed("with_history must be true or false.")
            }
        guard let account = try await readers.run(find) else { throw StorageError.noSuchAccount }
        let permit = try shares.take(account.id)
        let now = settings.clock.now()
        if exchange.hasBody {
            let event = AuditEvent(.accountExported, of: account.id, by: actor)
            try await writer.run { [storage] in try storage.record([AuditEntry(event, at: now)]) }
        }
        let export = AccountExport(
            of: account, storage: storage, history: history, now: now, permit: permit)
        return Answer(
            headers: Self.headers(account),
            stream: body(export, of: account.id, permit) { [gate, bearer = exchange.bearer] in
                try await gate.checkAgain(bearer, operation)
            })
    }

    /// An error ends the connection within the answer, which tells the client that it is
    /// incomplete.
    /// - Parameter check: Whether reading is still permitted. Called before each slice, because the
    ///   client may take long.
    func body(
        _ export: AccountExport, of account: AccountID, _ permit: AccountShares.Permit,
        check: @escaping @Sendable () async throws -> Void
    ) -> Answer.Stream {
        { write in
            // Shared by the slices, of which one is made at a time.
            let export = Mutex(export)
            var pace = Pace(pace, settings.clock)
            while true {
                try await pace.untilNotBusy { try await check() }
                while permit.isFull { try await pace.wait() }
                let slice = try await pace.untilNotBusy {
                    try await readers.run(for: account) {
                        try export.withLock { export in try export.next() }
                    }
                }
                guard let slice else { break }
                permit.note(slice.count)
                let start = settings.clock.uptime()
                try await write(ByteBuffer(bytes: slice))
                try pace.sent(slice.count, since: start)
                permit.give(slice.count)
            }
            // Before the end: whoever has read that may ask for the next export.
            permit.end()
        }
    }

    private static let mediaType = "application/json"

    private static func headers(_ account: Account) -> HTTPHeaders {
        [
            "Content-Type": mediaType,
            "Content-Disposition": "attachment; filename=\"ubiquity-\(account.id).json\"",
        ]
    }
}

extension TrafficPace.Rule {
    /// At least 16 KB a second, besides what fits into buffers, and an hour for the whole.
    static let export = TrafficPace.Rule(
        windowMilliseconds: 60_000, bytesPerSecondMin: 16 << 10, totalMilliseconds: 3_600_000,
        lumpBytesMax: 1 << 20)
}

/// How long an export may take. The reader's pace is only measured while the server waits for it.
private struct Pace {
    private let rule: TrafficPace.Rule?
    private let clock: ServerClock
    private let began: Int64
    /// The time waited for the reader.
    private var waited: Int64 = 0
    private var reader: TrafficPace?

    /// - Parameter rule: Nil for no limit.
    init(_ rule: TrafficPace.Rule?, _ clock: ServerClock) {
        self.rule = rule
        self.clock = clock
        began = clock.uptime()
        reader = rule.map { TrafficPace($0, now: 0) }
    }

    mutating func sent(_ count: Int, since start: Int64) throws {
        waited += clock.uptime() - start
        reader?.move(count)
        if reader?.check(now: waited) == .tooSlow { throw TooSlow() }
        try check()
    }

    /// Waits a moment for the others.
    func wait() async throws {
        try check()
        try await Task.sleep(for: .milliseconds(20))
    }

    /// Repeats what has no place in the queue, for some seconds.
    func untilNotBusy<T>(_ body: () async throws -> T) async throws -> T {
        for _ in 0..<Self.triesMax {
            do { return try await body() } catch is Busy { try await wait() }
        }
        return try await body()
    }

    private static let triesMax = 500

    private func check() throws {
        guard let total = rule?.totalMilliseconds, clock.uptime() - began >= total else { return }
        throw TooSlow()
    }

    struct TooSlow: Error {}
}
