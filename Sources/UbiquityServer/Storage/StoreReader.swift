// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// Reads stores on threads that may block, and records how far each device has read.
struct StoreReader: Sendable {
    let storage: any ServerStorage
    let threads: BlockingThreads
    let sightings: SightingLog
    let clock: ServerClock
    /// The budget of answers that wait in connections. When it is used up, no further store is
    /// read.
    let answers: ByteBudget

    /// The maximum size of the records in one answer, so that none is too large for a message or a
    /// buffer. The default limits of a store are far below.
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
    ///   - since: Nil for the whole store.
    ///   - encode: Runs on the same thread, whose stack suffices for nested values.
    /// - Throws: ``Problem`` if the cursor is no longer valid or too much waits to be sent,
    ///   ``StorageError``, ``Busy``.
    func changes<T: Sendable>(
        of store: StoreKey, since: Position?, for device: DeviceName,
        encode: @escaping @Sendable (ChangeSet) -> T
    ) async throws -> T {
        try await threads.run { [self] in
            // Checked here, and not before, because others may have waited for the thread too.
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
