// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
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
    /// The approximate bytes that a line takes in memory, with its key and the value of a short version.
    private static let lineBytes = 768

    /// The versions of a store or of a key, those that came last first.
    func list(_ exchange: Exchange, _ rights: DeviceRights, _ store: StoreReference) throws {
        let request = exchange.request
        let format = try exchange.answerFormat
        let key = try request.query.key
        let place = try request.query.text("before").map { text throws(Problem) in
            guard let place = HistoryRule.Place(text) else {
                throw .malformed("This position was not issued by this server.")
            }
            return place
        }
        let max = try request.query.count("limit", max: Self.versionsMax) ?? Self.versionsUsual
        let rule = try rule(for: rights)
        let generation = try request.query.generation
        try SealingRefusal.check(generation, in: rights.generation)
        try reader.answer(
            for: rights, then: exchange.callback { exchange.answer($0) }
        ) { storage, permit in
            var isReadable = true
            var next: HistoryRule.Place?
            let versions = try Self.read(storage, store, key, permit) { state, lines in
                isReadable = state.isReadable(with: generation)
                guard isReadable else { return [] }
                let page = rule.page(
                    of: lines, after: place, max: max, bytesMax: Self.pageBytesMax)
                next = page.next
                return page.chosen
            }
            guard isReadable else { throw SealingRefusal.storeUnsealed }
            return AnswerDraft(versions, format, permit) { version, encoder in
                encoder.encode(try version.version())
            } end: { [next] encoder, pieces in
                pieces.append(
                    encoder.end(next: next?.description, serverMilliseconds: rule.now))
                return Answer(pieces.end(), permit, format)
            }
        }
    }

    /// A store as it was at a revision or a time; now, if neither is given.
    func snapshot(_ exchange: Exchange, _ rights: DeviceRights, _ store: StoreReference) throws {
        let request = exchange.request
        let format = try exchange.answerFormat
        let time: HistoryRule.Time
        switch (try request.query.number("revision"), try request.query.number("milliseconds")) {
        case (let revision?, nil): time = .revision(revision)
        case (nil, let milliseconds?): time = .milliseconds(milliseconds)
        case (nil, nil): time = .milliseconds(.max)
        case (_?, _?): throw Problem.malformed("Give either revision or milliseconds.")
        }
        let rule = try rule(for: rights)
        let generation = try request.query.generation
        try SealingRefusal.check(generation, in: rights.generation)
        try reader.answer(
            for: rights, then: exchange.callback { exchange.answer($0) }
        ) { storage, permit in
            var isReadable = true
            var found: Result<HistoryRule.Snapshot, HistoryForgotten>?
            let versions = try Self.read(storage, store, nil, permit) { state, lines in
                isReadable = state.isReadable(with: generation)
                guard isReadable else { return [] }
                let snapshot = Result { () throws(HistoryForgotten) in
                    try rule.snapshot(of: lines, at: time, in: state)
                }
                found = snapshot
                return (try? snapshot.get().chosen) ?? []
            }
            guard isReadable else { throw SealingRefusal.storeUnsealed }
            guard let snapshot = try found?.get() else { throw StorageError.unreadable }
            return AnswerDraft(versions, format, permit) { version, encoder in
                encoder.encode(try version.record())
            } end: { encoder, pieces in
                pieces.append(
                    encoder.end(
                        StoreSnapshot(
                            records: [], revision: snapshot.revision,
                            forgottenKeys: snapshot.forgotten, serverMilliseconds: rule.now)))
                return Answer(pieces.end(), permit, format)
            }
        }
    }

    /// - Throws: ``Problem`` if there is no history.
    private func rule(for rights: DeviceRights) throws(Problem) -> HistoryRule {
        let rule = HistoryRule(settings.history, now: settings.clock.now()).of(rights.limits)
        guard !rule.limits.isOff else { throw .historyOff }
        return rule
    }

    /// Reads versions, or current records. The lines that the choice is made among count as the account's
    /// meanwhile.
    static func read(
        _ storage: any HistoryStorage, _ store: StoreReference, _ key: Key?,
        _ permit: AccountShares.Permit, currentOnly: Bool = false,
        _ choose: (StoreState, [HistoryRule.Line]) -> [Int]
    ) throws(StorageError) -> [StoredVersion] {
        var bytes = 0
        defer { permit.give(bytes) }
        return try storage.versions(of: store, key: key, currentOnly: currentOnly) { state, lines in
            permit.note(lines.count * lineBytes - bytes)
            bytes = lines.count * lineBytes
            return choose(state, lines)
        }
    }
}
