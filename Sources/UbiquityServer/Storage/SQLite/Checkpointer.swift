// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
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

    private struct State {
        enum Pass { case none, running, done }

        var pass = Pass.none
        /// The passes since the log began anew.
        var passes = 0
        /// The pages written to the log since the newest pass began.
        var pages = 0
        var mustEmpty = false

        /// - Returns: Whether another pass is to begin.
        mutating func begin(over pagesMax: Int) -> Bool {
            guard pass != .running, passes < Checkpointer.passesMax, pages > pagesMax else {
                return false
            }
            (pass, passes, pages) = (.running, passes + 1, 0)
            return true
        }
    }

    /// The pages in the log for which a pass begins: a page that is written several times meanwhile is
    /// moved once.
    private static let passPagesMin = 4_000
    /// The pages that the writer moves itself. More are left to another pass.
    private static let restPagesMax = 250
    /// After so many passes, the writer moves the rest, however much it is, because the disk is
    /// slower than the pushes.
    private static let passesMax = 4

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "ubiquity.server.checkpoints")
    /// Only used on `queue`.
    private let database: DatabaseQueue

    init(_ database: DatabaseQueue) { self.database = database }

    /// Called after each commit.
    func committed(_ db: Database) -> Rest {
        let pages = Self.pagesWritten(by: db)
        let (begins, rest) = state.withLock { state -> (Bool, Rest) in
            state.pages += pages
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

    /// Whether emptying the log would take long. It is then done after one of the next commits, or
    /// soon does not take long any more.
    func defersEmptying() -> Bool {
        let (begins, defers) = state.withLock { state in
            let begins = state.begin(over: Self.restPagesMax)
            state.mustEmpty = state.pass == .running
            return (begins, state.mustEmpty)
        }
        if begins { beginPass() }
        return defers
    }

    /// Called before the writer moves all that is left, because only one connection can do that at
    /// a time.
    func stop() {
        queue.sync {}
        state.withLock { $0 = State() }
    }

    func close() throws {
        stop()
        try database.close()
    }

    private func beginPass() {
        queue.async { [self] in
            // A failure leaves more for the next pass or the writer.
            _ = try? database.writeWithoutTransaction { try $0.checkpoint(.passive) }
            state.withLock { $0.pass = .done }
        }
    }

    /// The pages that the connection has written to the log since the last call.
    private static func pagesWritten(by db: Database) -> Int {
        var (count, greatest): (Int32, Int32) = (0, 0)
        sqlite3_db_status(
            db.sqliteConnection, SQLITE_DBSTATUS_CACHE_WRITE, &count, &greatest, 1)
        return Int(count)
    }
}
