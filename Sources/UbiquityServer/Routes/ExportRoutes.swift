// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import UbiquityArchive
internal import UbiquityCore
internal import UbiquityWire

/// Exports everything in an account as an archive, for the person and for the operator.
struct ExportRoutes: Sendable {
    let storage: any ServerStorage
    let writer: BlockingThreads
    let readers: BlockingThreads
    var gate: Gate
    let settings: ServerSettings
    private let permits = AccountShares(of: ByteBudget(max: exportsMax), placesMax: 1, bytesMin: 1)

    private static let exportsMax = 4

    /// One export of an account at a time, and four at all: each has a store in memory, and lasts as
    /// long as its client takes to read it.
    func permit(for account: AccountID) throws(Busy) -> AccountShares.Permit {
        let permit = try permits.take(account)
        guard permit.take(1) else { throw Busy() }
        return permit
    }

    @Sendable func own(
        _ request: Request, _ context: ServerContext, _ rights: DeviceRights
    ) async throws -> Response {
        try await answer(request, .wholeAccount, by: .device(rights.reference.id)) {
            [storage] in
            try storage.account(rights.account)
        }
    }

    @Sendable func named(_ request: Request, _ context: ServerContext) async throws -> Response {
        let name = try context.parameters.accountName()
        return try await answer(request, .operators, by: gate.operatorActor) { [storage] in
            try storage.account(named: name)
        }
    }

    private func answer(
        _ request: Request, _ operation: ServerOperation, by actor: AuditActor,
        find: @escaping @Sendable () throws -> Account?
    ) async throws -> Response {
        guard request.accepts(Self.mediaType) else {
            throw Problem(.notAcceptable, "The answer is available only as application/x-tar.")
        }
        let history: HistoryRule? =
            switch request.uri.text("with_history") {
            case nil, "false": nil
            case "true": HistoryRule(settings.history, now: settings.clock.now())
            default: throw Problem.malformed("with_history must be true or false.")
            }
        guard let account = try await readers.run(find) else { throw StorageError.noSuchAccount }
        let permit = try permit(for: account.id)
        let now = settings.clock.now()
        if request.method != .head {
            let event = AuditEvent(.accountExported, of: account.id, by: actor)
            try await writer.run { [storage] in try storage.record([AuditEntry(event, at: now)]) }
        }
        let export = try await readers.run(for: account.id) { [storage] in
            try AccountExport(of: account, storage: storage, history: history, now: now)
        }
        return Response(
            status: .ok, headers: Self.headers(account),
            body: ResponseBody { [readers, gate, bearer = request.bearer] writer in
                try await Self.write(export, readers, account.id, to: &writer) {
                    try await gate.checkAgain(bearer, operation)
                }
                // Before the end: whoever has read that may ask for the next export.
                permit.end()
                try await writer.finish(nil)
            })
    }

    /// An error ends the connection within the answer, which tells the client that it is
    /// incomplete.
    /// - Parameter check: Whether reading is still permitted. Called before each piece, because the
    ///   client may take hours.
    @concurrent private static func write(
        _ export: AccountExport, _ readers: BlockingThreads, _ account: AccountID,
        to writer: inout any ResponseBodyWriter, check: @Sendable () async throws -> Void
    ) async throws {
        var export = export
        while true {
            try await check()
            let (piece, rest) = try await readers.run(for: account) { [export] in
                var export = export
                return (try export.next(), export)
            }
            guard let piece else { break }
            try await writer.write(ByteBuffer(bytes: piece))
            export = rest
        }
    }

    private static let mediaType = "application/x-tar"

    private static func headers(_ account: Account) -> HTTPFields {
        [
            .contentType: mediaType,
            .contentDisposition: "attachment; filename=\"ubiquity-\(account.id).tar\"",
        ]
    }
}
