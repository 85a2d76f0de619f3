// SPDX-License-Identifier: Apache-2.0

import UbiquityServer

/// The state of a PostgreSQL database for servers, as far as it can be examined. ``findings`` are the
/// conclusions.
struct DatabaseFacts {
    var inspection: Result<DatabaseInspection, DatabaseProblem>

    init(_ inspection: Result<DatabaseInspection, DatabaseProblem>) { self.inspection = inspection }

    init(_ settings: PostgresSettings) {
        inspection = Result { () throws(DatabaseProblem) in try DatabaseInspection(settings) }
    }

    /// In diagnostic order.
    var findings: [Finding] {
        switch inspection {
        case .failure(let problem): [.problem("connection", "Cannot connect: \(problem).")]
        case .success(let database):
            [
                database.versionFinding, database.encodingFinding, database.tablesFinding,
                database.flushFinding, database.pagesFinding, database.commitFinding,
                database.connectionsFinding, database.clockFinding, database.standbyFinding,
                database.secrecyFinding, database.roleFinding, database.vacuumFinding,
                database.checksumsFinding,
            ].compactMap(\.self)
        }
    }
}

extension DatabaseInspection {
    fileprivate var versionFinding: Finding {
        guard version >= 150_000 else {
            return .problem(
                "version",
                "PostgreSQL \(versionText) is too old; servers need version 15 or later.")
        }
        return .ok("version", "PostgreSQL \(versionText) accepts connections.")
    }

    fileprivate var encodingFinding: Finding? {
        guard encoding != "UTF8" else { return nil }
        return .problem(
            "encoding",
            "The database has the encoding \(encoding), which lacks characters; create another one "
                + "with ENCODING 'UTF8', and copy the data.")
    }

    fileprivate var tablesFinding: Finding {
        switch tables {
        case .none where mayCreate:
            .note(
                "tables",
                "The database has no tables yet; a server creates them at its first start, or "
                    + "`ubiquity database migrate` does.")
        case .none:
            .problem(
                "tables",
                "The database has no tables, and the role may not create any; run GRANT CREATE ON "
                    + "DATABASE for it.")
        case .ours(let version, let known) where version < known:
            .problem(
                "tables",
                "The tables have format \(version), and this program needs format \(known); run "
                    + "`ubiquity database migrate`.")
        case .ours(let version, _): .ok("tables", "The tables have format \(version).")
        case .unusable(let reason): .problem("tables", "The tables cannot be used: \(reason).")
        }
    }

    fileprivate var flushFinding: Finding {
        guard !isFlushing else {
            return .ok("fsync", "PostgreSQL flushes what it confirms to its disk.")
        }
        return .problem(
            "fsync",
            "fsync is off: a crash of PostgreSQL's machine can destroy the whole database; set "
                + "fsync = on.")
    }

    fileprivate var pagesFinding: Finding? {
        guard !hasFullPages else { return nil }
        return .problem(
            "full-page-writes",
            "full_page_writes is off: a crash can leave half-written pages; set "
                + "full_page_writes = on, unless the file system rules that out.")
    }

    fileprivate var commitFinding: Finding? {
        guard ["off", "local"].contains(synchronousCommit) else { return nil }
        return .note(
            "synchronous-commit",
            "synchronous_commit is \(synchronousCommit); servers turn it on for themselves. Set it "
                + "to on, so that nobody relies on less.")
    }

    fileprivate var connectionsFinding: Finding {
        // A server's default, and the connection that listens to the other servers.
        let perNode = PostgresSettings(url: "").connectionsMax + 1
        let free = max(0, connectionsMax - connectionsReserved - connections)
        let state =
            "\(Phrase.counted(connections, "connection")) of \(connectionsMax), "
            + "\(ownConnections) of them by servers and commands"
        if free < perNode {
            return .problem(
                "connections",
                "There is no room for another server: \(state), and a server uses up to "
                    + "\(perNode). Raise max_connections, or lower --database-connections of the "
                    + "servers.")
        }
        return .ok(
            "connections",
            "There is room for \(Phrase.counted(free / perNode, "more server")) with "
                + "\(perNode) connections each: \(state).")
    }

    /// More than this, and a server is not ready.
    private static let clockMillisecondsMax: Int64 = 1_000

    fileprivate var clockFinding: Finding {
        let difference = clockAhead.magnitude
        let direction = clockAhead > 0 ? "ahead of" : "behind"
        guard difference > UInt64(clockPrecision) + UInt64(Self.clockMillisecondsMax) else {
            return .ok(
                "clock",
                "The clocks of PostgreSQL and this machine differ by about \(difference) ms.")
        }
        return .problem(
            "clock",
            "PostgreSQL's clock is \(difference) ms \(direction) this machine's, and a server here "
                + "would not be ready; run a time service (chrony or systemd-timesyncd) on both.")
    }

    fileprivate var standbyFinding: Finding {
        switch (standbys, synchronousStandbys.isEmpty) {
        case (0, true):
            .note(
                "standby",
                "No standby is connected: if the disk is lost, so is what the last backup lacks. "
                    + "docs/OPERATING.md says how to run one.")
        case (0, false):
            .problem(
                "standby",
                "synchronous_standby_names is set, and no standby is connected: pushes wait for "
                    + "one. Start the standby.")
        case (_, true):
            .note(
                "standby",
                "\(Phrase.counted(standbys, "standby connection")), none of them synchronous: a "
                    + "failover may lose the last pushes, which devices send again if they still "
                    + "have them. Set synchronous_standby_names, and start servers with "
                    + "--require-synchronous-standby, to rule that out.")
        case (_, false):
            .ok(
                "standby",
                "\(Phrase.counted(standbys, "standby connection")), and commits wait for "
                    + "\(synchronousStandbys).")
        }
    }

    fileprivate var secrecyFinding: Finding? {
        guard isOpenToEavesdroppers else { return nil }
        return .problem(
            "tls",
            "The connection goes to another machine without TLS: everybody's values can be read in "
                + "transit. Add sslmode=verify-full to the address, and set ssl = on there.")
    }

    fileprivate var roleFinding: Finding? {
        guard isSuperuser else { return nil }
        return .note(
            "role",
            "The role is a superuser; servers only need to own the database. Use a role of its "
                + "own.")
    }

    fileprivate var vacuumFinding: Finding? {
        guard !isVacuuming else { return nil }
        return .problem(
            "autovacuum",
            "autovacuum is off: the tables grow without end; set autovacuum = on.")
    }

    fileprivate var checksumsFinding: Finding? {
        guard !hasChecksums else { return nil }
        return .note(
            "checksums",
            "Data checksums are off, so PostgreSQL may not notice damage on its disk; run "
                + "`pg_checksums --enable` while it is stopped.")
    }
}
