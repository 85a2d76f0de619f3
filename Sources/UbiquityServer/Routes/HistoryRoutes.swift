// SPDX-License-Identifier: Apache-2.0

internal import Hummingbird
internal import NIOCore
internal import NIOHTTP1
internal import Synchronization
internal import UbiquityCore
internal import UbiquityWire

/// Reads the histories of stores, on threads that may block, with accounts taking turns.
struct HistoryRoutes: Sendable {
    let reader: StoreReader
    let settings: ServerSettings

    private static let versionsMax = 1_000
    private static let versionsUsual = 100
    /// The most stored bytes of one page. A single version may be larger.
    private static let pageBytesMax = 1 << 20

    /// The versions of a store or of a key, those that came last first.
    func list(_ exchange: Exchange, _ rights: DeviceRights, _ store: StoreReference) throws {
        let request = exchange.request
        let format = try request.headers.neededAnswerFormat
        let key = try request.query.key
        let place = try request.query.text("before").map { text throws(Problem) in
            guard let place = HistoryRule.Place(text) else {
                throw .malformed("This position was not issued by this server.")
            }
            return place
        }
        let max = try request.query.count("limit", max: Self.versionsMax) ?? Self.versionsUsual
        let rule = try rule(for: rights)
        try answer(exchange, rights, format) { storage, permit in
            var next: HistoryRule.Place?
            let versions = try storage.versions(of: store, key: key) { _, lines in
                let page = rule.page(
                    of: lines, after: place, max: max, bytesMax: Self.pageBytesMax)
                next = page.next
                return page.chosen
            }
            return HistoryDraft(format, versions, permit) { version, encoder in
                encoder.encode(try version.version())
            } end: { [next] encoder in
                encoder.end(next: next?.description, serverMilliseconds: rule.now)
            }
        }
    }

    /// A store as it was at a revision or a time; now, if neither is given.
    func snapshot(_ exchange: Exchange, _ rights: DeviceRights, _ store: StoreReference) throws {
        let request = exchange.request
        let format = try request.headers.neededAnswerFormat
        let time: HistoryRule.Time
        switch (try request.query.number("revision"), try request.query.number("milliseconds")) {
        case (let revision?, nil): time = .revision(revision)
        case (nil, let milliseconds?): time = .milliseconds(milliseconds)
        case (nil, nil): time = .milliseconds(.max)
        case (_?, _?): throw Problem.malformed("Give either revision or milliseconds.")
        }
        let rule = try rule(for: rights)
        try answer(exchange, rights, format) { storage, permit in
            var found: Result<HistoryRule.Snapshot, HistoryForgotten>?
            let versions = try storage.versions(of: store, key: nil) { state, lines in
                let snapshot = Result { () throws(HistoryForgotten) in
                    try rule.snapshot(of: lines, at: time, in: state)
                }
                found = snapshot
                return (try? snapshot.get().chosen) ?? []
            }
            guard let snapshot = try found?.get() else { throw StorageError.unreadable }
            return HistoryDraft(format, versions, permit) { version, encoder in
                encoder.encode(try version.record())
            } end: { encoder in
                encoder.end(
                    StoreSnapshot(
                        records: [], revision: snapshot.revision,
                        forgottenKeys: snapshot.forgotten, serverMilliseconds: rule.now))
            }
        }
    }

    /// - Throws: ``Problem`` if there is no history.
    private func rule(for rights: DeviceRights) throws(Problem) -> HistoryRule {
        let rule = HistoryRule(settings.history, now: settings.clock.now()).of(rights.limits)
        guard !rule.limits.isOff else { throw .historyOff }
        return rule
    }

    private func answer(
        _ exchange: Exchange, _ rights: DeviceRights, _ format: WireFormat,
        _ begin:
            @escaping @Sendable (any ServerStorage, AccountShares.Permit) throws ->
            HistoryDraft
    ) throws(Busy) {
        let permit = try reader.shares.take(rights)
        let draft = Shared<HistoryDraft?>(nil)
        reader.threads.run(slicesFor: rights.account) { [storage = reader.storage] in
            try draft.value.withLock { draft in
                if draft == nil {
                    guard !permit.isFull else { throw Problem.answersInMemory }
                    draft = try begin(storage, permit)
                }
                return try draft?.encodeSlice()
            }
        } then: { [answered = exchange.callback { exchange.answer($0) }] in
            answered($0)
        }
    }
}

/// An answer with versions in the making. Decodes one at a time.
private struct HistoryDraft: Sendable {
    private let format: WireFormat
    private let permit: AccountShares.Permit
    private var waiting: [StoredVersion]
    private var encoder: WireListEncoder
    private var pieces: AnswerPieces
    private let encode: @Sendable (StoredVersion, inout WireListEncoder) throws -> [UInt8]
    private let end: @Sendable (WireListEncoder) -> [UInt8]

    init(
        _ format: WireFormat, _ versions: [StoredVersion], _ permit: AccountShares.Permit,
        encode: @escaping @Sendable (StoredVersion, inout WireListEncoder) throws -> [UInt8],
        end: @escaping @Sendable (WireListEncoder) -> [UInt8]
    ) {
        self.format = format
        self.permit = permit
        waiting = versions.reversed()
        encoder = WireListEncoder(format)
        pieces = AnswerPieces(permit)
        self.encode = encode
        self.end = end
        permit.note(versions.reduce(0) { $0 + $1.bytes })
    }

    /// - Returns: The answer; nil if there is more to encode.
    /// - Throws: ``StorageError``, ``Problem``.
    mutating func encodeSlice() throws -> Answer? {
        var encoded = 0
        while encoded < StoreAnswer.Draft.sliceBytes, let version = waiting.popLast() {
            encoded += version.bytes
            pieces.append(try encode(version, &encoder))
            permit.give(version.bytes)
            guard pieces.bytes <= StoreReader.answerBytesMax else { throw Problem.answerTooLarge }
        }
        guard waiting.isEmpty else { return nil }
        pieces.append(end(encoder))
        return Answer(format, pieces.end(), permit)
    }
}
