// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation
internal import GRDB
internal import Synchronization
package import UbiquityCore

/// A store in one SQLite file, which several processes may have open.
///
/// Each save is one transaction, flushed to disk before it returns. All errors are
/// ``LocalStorageError``.
///
/// Shared state:
/// - `queue`: GRDB's own serial queue guards the connection. Guarded by its mutex, because a file that
///   could only be read is opened later.
/// - `files`: the open file and its log, guarded by its mutex, because they are opened later too.
/// - `commitSignal` and `lease`: thread-safe constants.
/// - `watcher`: set once and cleared by ``close()``. Guarded by its mutex, because that may be called
///   on any thread.
/// - `lastLook`: the last known version of the disk, and the value of SQLite's counter at that
///   time. Guarded by a mutex of its own. It is used from one thread at a time, so nobody waits;
///   the mutex proves this to the compiler and is only held for copies.
/// - `isUnannounced`: whether there is a commit without its signal. Guarded by its mutex, because
///   ``close()`` may be called on any thread.
/// - `logBytes`: the bytes of values that this connection added to SQLite's log since it was last
///   emptied. Guarded in the same way.
package final class SQLiteStorage: LocalStorage {
    package let path: String
    /// Nil while the disk has no room for opening the file.
    private let queue: Mutex<DatabaseQueue?>
    private let files = Mutex<[String: FileIdentity]>([:])
    private let commitSignal: CommitSignal
    private let lease: ProcessLease
    private let watcher = Mutex<FileWatcher?>(nil)
    private let lastLook = Mutex(Look())
    private let isUnannounced = Mutex(false)
    private let logBytes = Mutex(0)
    /// Opening reads the whole log twice. Below this size, that takes less time than flushing the
    /// disk. Small changes in succession never reach it and leave the log to SQLite, because each
    /// emptying would delay the next change.
    private static let logBytesMax = 256 << 10

    private struct Look {
        /// SQLite's counter of other connections' commits.
        var dataVersion: Int64 = -1
        var version: Int64 = -1
    }

    /// Opens the file, creating it and the folders above it if needed.
    ///
    /// On a full disk, a file with values is only read; each save tries to open it.
    /// - Throws: ``LocalStorageError``; nothing that existed before was changed then.
    package init(path: String) throws(LocalStorageError) {
        self.path = path
        do { queue = Mutex(try SQLiteFile.open(path)) } catch {
            guard error.isOfDisk,
                try SQLiteFile.reading(
                    path, label: Self.label, { try SQLiteFile.look(at: $0, path) > 0 })
            else { throw error }
            queue = Mutex(nil)
        }
        do {
            commitSignal = try CommitSignal(store: path)
            lease = try ProcessLease(path: ProcessLease.path(ofStore: path))
        } catch {
            throw LocalStorageError(.notWritable, path: path, cause: "\(error)")
        }
        noteFiles()
    }

    package func load() throws -> DiskChanges {
        try reading { db in
            // The counter first: a commit in between is then seen twice rather than never.
            let dataVersion = try Self.dataVersion(db)
            var changes = DiskChanges()
            try db.inTransaction(.deferred) {
                changes = try SQLiteRows.changes(db, after: nil)
                return .commit
            }
            note(changes.version, dataVersion)
            return changes
        }
    }

    package func changes(after version: Int64) throws -> DiskChanges? {
        try checkFiles()
        return try attempt { db in
            let dataVersion = try Self.dataVersion(db)
            let look = lastLook.withLock { $0 }
            if look.dataVersion == dataVersion, look.version == version { return nil }
            var changes: DiskChanges?
            try db.inTransaction(.deferred) {
                let current = try SQLiteRows.version(db)
                if current != version { changes = try SQLiteRows.changes(db, after: version) }
                return .commit
            }
            note(changes?.version ?? version, dataVersion)
            return changes
        }
    }

    package func save(_ batch: SaveBatch) throws -> SaveOutcome {
        announce()
        try checkFiles()
        let outcome = try attempt { db in
            var outcome = SaveOutcome.saved(version: batch.expectedVersion + 1)
            try db.inTransaction(.immediate) {
                guard try SQLiteRows.version(db) == batch.expectedVersion else {
                    outcome = .conflict(
                        try SQLiteRows.changes(db, after: batch.expectedVersion))
                    return .rollback
                }
                try SQLiteRows.write(batch, to: db)
                return .commit
            }
            // A commit of this connection does not change SQLite's counter.
            if case .saved(let version) = outcome { lastLook.withLock { $0.version = version } }
            return outcome
        }
        try checkFiles()
        if case .saved = outcome {
            logBytes.withLock { $0 += Self.valueBytes(of: batch) }
            isUnannounced.withLock { $0 = true }
        }
        return outcome
    }

    package func announce() {
        let isDue = isUnannounced.withLock { isUnannounced in
            defer { isUnannounced = false }
            return isUnannounced
        }
        if isDue { commitSignal.send() }
    }

    package func refusedWrites() throws -> [RefusedWrite] {
        try reading { try SQLiteRows.refusedWrites($0) }
    }

    package func forgetRefusedWrites() throws {
        try attempt { try SQLiteRows.forgetRefused($0) }
    }

    package func tidy() {
        guard logBytes.withLock({ $0 > Self.logBytesMax }) else { return }
        logBytes.withLock { $0 = 0 }
        try? opened().writeWithoutTransaction(SQLiteFile.emptyLog)
    }

    /// - Throws: ``SystemError``.
    package func watch(changed: @escaping @Sendable () -> Void) throws {
        let watcher = try FileWatcher(
            folder: PrivateFiles.parent(of: path) ?? ".",
            file: (path as NSString).lastPathComponent + CommitSignal.suffix,
            queue: DispatchQueue(label: "ubiquity.file"), handler: changed)
        self.watcher.withLock { $0 = watcher }
    }

    package func whenLeading(_ body: @escaping @Sendable () -> Void) {
        if lease.tryAcquire() {
            body()
        } else {
            lease.whenAcquired(body)
        }
    }

    package func close() {
        announce()
        watcher.withLock { watcher in
            watcher?.cancel()
            watcher = nil
        }
        queue.withLock { try? $0?.close() }
        lease.close()
    }

    private static func valueBytes(of batch: SaveBatch) -> Int {
        batch.entries.reduce(0) { bytes, entry in
            let contents = [entry.confirmed?.content, entry.pending?.record.content]
            return contents.reduce(bytes) { $0 + ($1?.value?.quotaBytes ?? 0) }
        }
    }

    private func attempt<T>(_ body: (Database) throws -> T) throws -> T {
        do { return try opened().writeWithoutTransaction(body) } catch {
            throw LocalStorageError(error, path: path)
        }
    }

    /// Reads, if need be without opening the file.
    private func reading<T>(_ body: (Database) throws -> T) throws -> T {
        do { return try attempt(body) } catch let error as LocalStorageError
            where error.isOfDisk && queue.withLock({ $0 == nil })
        { return try SQLiteFile.reading(path, label: Self.label, body) }
    }

    private func noteFiles() {
        files.withLock { files in
            for path in [path, path + "-wal"] { files[path] = FileIdentity(path: path) }
        }
    }

    /// A save counts if the next opening finds it: a file that was removed can still be written to.
    private func checkFiles() throws(LocalStorageError) {
        for (path, file) in files.withLock({ $0 }) {
            let found = FileIdentity(path: path)
            guard found != file else { continue }
            throw LocalStorageError(
                .moved, path: path, cause: found == nil ? "moved or removed" : "replaced")
        }
    }

    private static let label = "ubiquity.disk.full"

    private func opened() throws(LocalStorageError) -> DatabaseQueue {
        try queue.withLock { queue throws(LocalStorageError) in
            if let queue { return queue }
            let opened = try SQLiteFile.open(path)
            queue = opened
            noteFiles()
            lastLook.withLock { $0 = Look() }
            return opened
        }
    }

    private func note(_ version: Int64, _ dataVersion: Int64) {
        lastLook.withLock { $0 = Look(dataVersion: dataVersion, version: version) }
    }

    private static func dataVersion(_ db: Database) throws -> Int64 {
        let statement = try db.cachedStatement(sql: "PRAGMA data_version")
        return try Int64.fetchOne(statement) ?? 0
    }
}

/// Writes the tables of a store's file, inside a caller's transaction.
extension SQLiteRows {
    static func write(_ batch: SaveBatch, to db: Database) throws {
        let version = batch.expectedVersion + 1
        for entry in batch.entries { try write(entry, version: version, to: db) }
        for refused in batch.refused { try write(refused, to: db) }
        if !batch.refused.isEmpty { try trimRefused(db) }
        try writeMeta(batch.meta, version: version, to: db)
    }

    /// - Parameter meta: Nil to leave it unchanged, or to write the initial one.
    static func writeMeta(_ meta: StoredMeta?, version: Int64, to db: Database) throws {
        if meta == nil, version > 0 {
            let statement = try db.cachedStatement(sql: "UPDATE meta SET version = ?")
            return try statement.execute(arguments: [version])
        }
        let statement = try db.cachedStatement(
            sql: "INSERT OR REPLACE INTO meta (id, version, data) VALUES (1, ?, ?)")
        try statement.execute(arguments: [
            version, StoredValue.encode((meta ?? StoredMeta()).fields),
        ])
    }

    /// Leaves those that were superseded.
    static func forgetRefused(_ db: Database) throws {
        try db.execute(
            sql: "DELETE FROM refused WHERE code <> ?", arguments: [Refusal.superseded.code])
    }

    private static func write(_ entry: StoredEntry, version: Int64, to db: Database) throws {
        if entry.confirmed == nil, entry.pending == nil, try removeTombstone(entry.key, db) {
            return
        }
        let statement = try db.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO entry (key, version,
                    confirmed_time, confirmed_device, confirmed_value, confirmed_digest,
                    pending_time, pending_device, pending_value, pending_digest,
                    pending_transaction, had_time, had_device,
                    provisional_wall, provisional_uptime, provisional_boot, provisional_seen,
                    pending_unkept, unkept, pending_generation)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        let (provisional, had) = (entry.pending?.provisional, entry.pending?.had)
        statement.setUncheckedArguments(
            [Data(entry.key.bytes), version]
                + columns(of: entry.confirmed) + columns(of: entry.pending?.record)
                + [
                    entry.pending.map { Int64(bitPattern: $0.transaction) },
                    had.map { Int64(bitPattern: $0.timestamp.rawValue) },
                    had.map { Int64(bitPattern: $0.device.rawValue) },
                    provisional?.madeAt.wall, provisional?.madeAt.uptime,
                    provisional.map { Int64(bitPattern: $0.madeAt.boot) },
                    provisional.map { Int64(bitPattern: $0.seen.rawValue) },
                    entry.pending?.isUnkept ?? false ? 1 : nil, entry.wasUnkept ? 1 : nil,
                    entry.pending.flatMap { $0.generation == 0 ? nil : Int64($0.generation) },
                ])
        try statement.execute()
    }

    /// Deletes the row of a tombstone that is no longer needed: no other process shows anything of
    /// it. Other rows stay as empty ones, for processes that have known the key.
    /// - Returns: Whether there was one.
    private static func removeTombstone(_ key: UbiquityCore.Key, _ db: Database) throws -> Bool {
        let statement = try db.cachedStatement(
            sql: """
                DELETE FROM entry WHERE key = ? AND confirmed_time IS NOT NULL
                    AND confirmed_value IS NULL AND pending_time IS NULL
                """)
        statement.setUncheckedArguments([Data(key.bytes)])
        try statement.execute()
        return db.changesCount > 0
    }

    private static func write(_ refused: RefusedWrite, to db: Database) throws {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO refused (key, time, device, value, digest, code, detail)
                SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE NOT EXISTS (
                    SELECT 1 FROM refused
                    WHERE key = ?1 AND time = ?2 AND device = ?3 AND value IS ?4)
                """)
        statement.setUncheckedArguments(
            [Data(refused.record.key.bytes)] + columns(of: refused.record)
                + [refused.refusal.code, refused.refusal.detail])
        try statement.execute()
    }

    /// Time, device, value and digest.
    private static func columns(of record: UbiquityCore.Record?) -> StatementArguments {
        [
            record.map { Int64(bitPattern: $0.stamp.timestamp.rawValue) },
            record.map { Int64(bitPattern: $0.stamp.device.rawValue) },
            record?.content.value.map(StoredValue.encode),
            record.map { Int64(bitPattern: $0.stamp.digest) },
        ]
    }

    private static func trimRefused(_ db: Database) throws {
        for comparison in ["=", "<>"] {
            let statement = try db.cachedStatement(
                sql: """
                    DELETE FROM refused WHERE id IN (
                        SELECT id FROM refused WHERE code \(comparison) ?
                        ORDER BY id DESC LIMIT -1 OFFSET ?)
                    """)
            try statement.execute(
                arguments: [Refusal.superseded.code, SaveBatch.refusedWritesMax])
        }
    }
}
