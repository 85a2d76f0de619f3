// SPDX-License-Identifier: Apache-2.0

/// The reason a server, or a command, cannot use a PostgreSQL database. Nothing in it was changed.
package enum DatabaseProblem: Error, Hashable, Sendable {
    /// PostgreSQL's client library is not installed, or is too old.
    case noClientLibrary
    case addressUnreadable
    case unreachable(String)
    /// PostgreSQL accepts no more connections, of this role or at all.
    case noConnectionLeft(String)
    case passwordWrong
    case noDatabase
    /// Only standbys answered.
    case readOnly
    /// - Parameter version: As PostgreSQL writes it.
    case serverTooOld(version: String)
    /// A node needs this many connections, and this many are free.
    case tooFewConnections(needed: Int, free: Int)
    case notPermitted(String)
    /// There is no schema yet.
    case empty
    /// The schema belongs to another program.
    case foreign
    /// Also of a program from before the first release.
    case newer(version: Int64, known: Int64)
    case older(version: Int64, known: Int64)
    /// Within one history it has lost what it had confirmed.
    case wentBack(String)
    case unusable(String)
}

extension DatabaseProblem: CustomStringConvertible {
    package var description: String {
        switch self {
        case .noClientLibrary:
            "PostgreSQL's client library, version 14 or later, is not installed; on Debian: "
                + "apt-get install libpq5"
        case .addressUnreadable:
            "the address of the database cannot be read; write it as "
                + "postgresql://user@host:5432/database"
        case .unreachable(let reason):
            "the database cannot be reached: \(reason); check the address, and that PostgreSQL is "
                + "running there and accepts such connections"
        case .noConnectionLeft(let reason):
            "the database has no connection left: \(reason); raise max_connections (or the role's "
                + "CONNECTION LIMIT), or lower --database-connections"
        case .passwordWrong:
            "the database refused the user or the password; check the address, PGPASSWORD or "
                + "~/.pgpass, and the server's pg_hba.conf"
        case .noDatabase:
            "the server has no database of this name; create it with `createdb --owner=ROLE NAME`, "
                + "or correct the address"
        case .readOnly:
            "the database is read-only, as a standby is; put all hosts of the cluster into the "
                + "address, and the primary is found"
        case .serverTooOld(let version):
            "the database server has version \(version); PostgreSQL 15 or later is needed"
        case .tooFewConnections(let needed, let free):
            "the database server has \(free) connections left for servers like this one, which "
                + "needs \(needed); raise max_connections, or lower --database-connections"
        case .notPermitted(let reason):
            "the database does not permit it: \(reason); make the user the owner of the schema "
                + "`ubiquity`, or of the database"
        case .empty:
            "the database has no server data; start a server on it with `ubiquity serve`, or run "
                + "`ubiquity database migrate`"
        case .foreign:
            "the database has a schema `ubiquity` that belongs to another program; choose another "
                + "database"
        case .newer(let version, let known):
            "the database has format \(version), and this program knows formats up to \(known); "
                + "it was written by a newer version of the program, or by one from before the first "
                + "release: use that version, or choose another database"
        case .older(let version, let known):
            "the database has format \(version), and this program needs format \(known); run "
                + "`ubiquity database migrate`"
        case .wentBack(let reason):
            "the database has lost what it had confirmed: \(reason); find out why before you start "
                + "a server again, see docs/OPERATING.md"
        case .unusable(let reason): "the database cannot be used: \(reason)"
        }
    }
}
