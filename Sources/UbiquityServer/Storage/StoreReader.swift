// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// Reads stores on threads that may block, and notes who has read how far.
struct StoreReader: Sendable {
    let storage: any ServerStorage
    let threads: BlockingThreads
    let sightings: SightingLog
    let clock: ServerClock
    /// What waits in connections to be read; full: no further store is.
    let answers: ByteBudget

    /// Of the records of one answer, by what they count: no answer is too large for a message or a
    /// buffer, and a store of today's limits is far from it.
    private static let answerBytesMax = 256 << 20

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
        try await threads.run { [storage] in try storage.stores(of: account) }
    }

    /// - Parameters:
    ///   - since: Nil: the whole store.
    ///   - encode: Runs on the same thread, which has room for values that nest.
    /// - Throws: ``Problem`` if the cursor does not hold any more, or too much waits to be sent,
    ///   ``StorageError``, ``Busy``.
    func changes<T: Sendable>(
        of store: StoreKey, since: Position?, for device: DeviceName,
        encode: @escaping @Sendable (ChangeSet) -> T
    ) async throws -> T {
        try await threads.run { [self] in
            // Here, and not before: others may have waited for the thread, too.
            guard !answers.isFull else { throw Problem.answersInMemory }
            let changes = try read(store, since: since)
            try Self.checkAnswer(of: changes.records)
            let passed = since?.revision ?? Position(changes.cursor)?.revision
            if let passed { sightings.pass(passed, of: store, by: device) }
            return encode(changes)
        }
    }

    private func read(_ store: StoreKey, since: Position?) throws -> ChangeSet {
        switch try storage.read(store, since: since) {
        case .changes(let records, let position, let isWhole, let horizon):
            return ChangeSet(
                records: records, cursor: position.cursor, serverMilliseconds: clock.now(),
                isWhole: isWhole, horizon: horizon)
        case .otherHistory: throw Problem.cursorOtherHistory
        case .forgotten: throw Problem.cursorForgotten
        }
    }
}
