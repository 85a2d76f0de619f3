// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import Synchronization

/// Moves committed pages from the log into the database's file, on a thread and a connection of its
/// own, so that pushes do not wait for it.
///
/// A log begins anew only when all of it is in the file, and under load more is always added
/// meanwhile. So this thread does the bulk in passes, and the writer the small rest between two
/// commits.
///
/// A log that begins anew keeps ``logBytesKept``, and writes over them: to flush a file that grows takes
/// twice as long. A log that is as long as that has nothing of the one before it.
///
/// State: `state`, guarded by its lock, because passes change it on `queue`; all calls come from
/// the writer's thread.
final class Checkpointer: Sendable {
    /// The work that is left to the writer after a commit.
    enum Rest {
        case nothing
        /// To move the rest, so that the log begins anew.
        case move
        /// To move the rest and empty the log.
        case empty
    }

    /// The work after which the log has nothing that was written long ago.
    enum Emptying {
        /// Nothing: since the last time of asking, a whole log was written, and the next begun.
        case needless
        /// To ask again soon: at once it would take long.
        case later
        case now
    }

    private struct State {
        enum Pass { case none, running, done }

        var pass = Pass.none
        /// The passes since the writer has moved what was left.
        var passes = 0
        /// The pages written to the log since the newest pass began, or since the writer moved the rest.
        var pages = 0
        var mustEmpty = false
        var log = Log()

        /// - Returns: Whether another pass is to begin.
        mutating func begin(over pagesMax: Int) -> Bool {
            guard pass != .running, passes < Checkpointer.passesMax, pages > pagesMax else {
                return false
            }
            (pass, passes, pages) = (.running, passes + 1, 0)
            return true
        }
    }

    private struct Log {
        var pages = 0
        /// Whether it began after the last time of asking.
        var isNew = false
        /// Whether it, or one before it, writes over another that began after the last time of asking and
        /// was whole.
        var hasReplacedNew = false

        /// - Parameter total: The pages that it has now. Fewer than before: it has begun anew.
        /// - Returns: The pages that were written to it.
        mutating func grow(to total: Int) -> Int {
            defer { pages = total }
            guard total < pages else { return total - pages }
            hasReplacedNew = hasReplacedNew || isNew && pages >= Checkpointer.passPagesMin
            isNew = true
            return total
        }
    }

    /// The pages in the log for which a pass begins. A page that is written several times before is moved
    /// once; but the more is moved at once, the longer the log's flushes take meanwhile.
    private static let passPagesMin = 1_000
    /// The pages that the writer moves itself. More are left to another pass.
    private static let restPagesMax = 250
    /// After so many passes, the writer moves the rest, however much it is, because the disk is
    /// slower than the pushes.
    private static let passesMax = 4

    private let pageBytes: Int
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "ubiquity.server.checkpoints")
    /// Only used on `queue`.
    private let database: DatabaseQueue

    init(_ database: DatabaseQueue) throws {
        self.database = database
        pageBytes = try database.read { try Int.fetchOne($0, sql: "PRAGMA page_size") } ?? 4_096
    }

    /// The bytes of its file that a log keeps when it begins anew: those of the shortest whole log.
    var logBytesKept: Int { logBytes(pages: Self.passPagesMin) }

    /// A head, and another before each page.
    private func logBytes(pages: Int) -> Int { 32 + pages * (24 + pageBytes) }

    /// Lets the log keep bytes, and learns how long it is, whenever the connection writes to it.
    func watch(_ writer: Database) throws {
        try writer.execute(sql: "PRAGMA journal_size_limit = \(logBytesKept)")
        sqlite3_wal_hook(
            writer.sqliteConnection,
            { context, _, _, pages in
                guard let context else { return SQLITE_OK }
                let checkpointer = Unmanaged<Checkpointer>.fromOpaque(context)
                    .takeUnretainedValue()
                checkpointer.state.withLock { $0.pages += $0.log.grow(to: Int(pages)) }
                return SQLITE_OK
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Called after each commit of pushes.
    func committed() -> Rest {
        let (begins, rest) = state.withLock { state -> (Bool, Rest) in
            switch state.pass {
            case .running: return (false, .nothing)
            case .none: return (state.begin(over: Self.passPagesMin), .nothing)
            case .done:
                if state.begin(over: Self.restPagesMax) { return (true, .nothing) }
                return (false, state.mustEmpty ? .empty : .move)
            }
        }
        if begins { beginPass() }
        return rest
    }

    /// If it would take long, it is done after one of the next commits, or soon does not take long any
    /// more.
    /// - Parameter bytes: The size of the log's file. It is more than it should be if cutting it failed.
    func emptying(fileBytes bytes: Int) -> Emptying {
        let (begins, emptying) = state.withLock { state -> (Bool, Emptying) in
            let isNeedless =
                state.log.hasReplacedNew
                && bytes <= logBytes(pages: max(Self.passPagesMin, state.log.pages))
            (state.log.isNew, state.log.hasReplacedNew) = (false, false)
            guard !isNeedless else { return (false, .needless) }
            let begins = state.begin(over: Self.restPagesMax)
            state.mustEmpty = state.pass == .running
            return (begins, state.mustEmpty ? .later : .now)
        }
        if begins { beginPass() }
        return emptying
    }

    /// Called before the writer moves all that is left, because only one connection can do that at
    /// a time.
    func stop() {
        queue.sync {}
        state.withLock { $0 = State(log: $0.log) }
    }

    func close() throws {
        stop()
        try database.close()
    }

    private func beginPass() {
        queue.async { [self] in
            // A failure leaves more for the next pass or the writer.
            try? database.writeWithoutTransaction { try Self.move(.passive, $0) }
            state.withLock { $0.pass = .done }
        }
    }

    /// Moves pages from the log into the file.
    ///
    /// Ends the process if the disk fails meanwhile. What a flush did not keep is lost though the system
    /// takes it for written, so that trying again keeps nothing of it, and the log begins anew over the only
    /// copy. The next start brings all of it back from the log.
    static func move(_ mode: Database.CheckpointMode, _ db: Database) throws {
        do { _ = try db.checkpoint(mode) } catch let error as DatabaseError
            where error.resultCode == .SQLITE_IOERR
        {
            let code = error.extendedResultCode.rawValue
            let sentence =
                "ubiquity: the disk failed while the database was written (SQLite error \(code)); the "
                + "server ends at once, because only its next start can tell what is on the disk\n"
            FileHandle.standardError.write(Data(sentence.utf8))
            _exit(EX_IOERR)
        }
    }
}
