// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

extension PostgresServerStorage {
    /// The columns of a ``Device``. Names are bytes, because PostgreSQL's texts cannot contain a zero
    /// byte.
    private static let deviceColumns = """
        account, id, title, created, seen, stores, expires, clock_ahead, clock_measured, version,
        (SELECT limits FROM ubiquity.account a WHERE a.id = device.account)
        """

    static func device(credential: SecretHash) -> PostgresStatement {
        PostgresStatement(
            "SELECT \(deviceColumns) FROM ubiquity.device WHERE credential = $1",
            [.bytes(credential.bytes)]
        )
    }

    /// One round trip for all.
    func rights(
        of credentials: [SecretHash]
    ) throws(StorageError) -> [Result<DeviceRights?, StorageError>] {
        try reading(credentials.map(Self.device)) { results, _ in
            results.map { result in
                Result { () throws(StorageError) in
                    try result.rows.first.map { row throws(StorageError) in try Device(row).rights }
                }
            }
        }
    }

    func devices(of account: AccountID) throws(StorageError) -> [Device] {
        try reading(Self.devices(of: account)) { $0.rows.compactMap { try? Device($0) } }
    }

    private static func devices(of account: AccountID) -> PostgresStatement {
        PostgresStatement(
            """
            SELECT \(deviceColumns) FROM ubiquity.device WHERE account = $1 ORDER BY created, id
            """, .text(account.string))
    }

    /// Reads the holdings of one moment, in one round trip.
    func holdings(of store: StoreReference, key: Key?) throws(StorageError) -> StoreHoldings {
        let name: [PostgresValue] = [.text(store.account.string), .text(store.identifier.string)]
        let (condition, arguments) = PostgresVersions.entries(of: store, key: key)
        let statements =
            PostgresStore.reading([store], isLocking: false) + [
                Self.devices(of: store.account),
                PostgresStatement(
                    """
                    SELECT p.device, p.revision FROM ubiquity.store s JOIN ubiquity.passed p
                        ON p.account = s.account AND p.store = s.number
                    WHERE s.account = $1 AND s.identifier = $2
                    """, name),
                PostgresStatement(
                    """
                    SELECT t.revision, t.device FROM ubiquity.store s
                    JOIN ubiquity.record t ON t.account = s.account AND t.store = s.number
                    \(condition)
                    """, arguments),
            ]
        return try reading(statements) { results, _ in
            let found = try PostgresStore.read([store], from: results[0...1])[store]?.get()
            var holdings = StoreHoldings(
                devices: results[2].rows.compactMap { try? Device($0) },
                lineage: found?.state.lineage ?? Lineage())
            for row in results[3].rows {
                holdings.passed[try row.device(0)] = try row.revision(1)
            }
            for row in results[4].rows {
                holdings.entries.append(
                    DeliveryRule.Item(revision: try row.revision(0), author: try row.device(1)))
            }
            return holdings
        }
    }

    func signedIn(
        among devices: Set<DeviceReference>
    ) throws(StorageError) -> Set<DeviceReference> {
        guard !devices.isEmpty else { return [] }
        let statement = PostgresStatement(
            """
            SELECT device.account, device.id
            FROM unnest($1::text[], $2::bigint[]) AS asked (account, id)
            JOIN ubiquity.device ON device.account = asked.account AND device.id = asked.id
            """, .texts(devices.map(\.account.string)), .integers(devices.map(\.id.bits)))
        return try reading(statement) { Set(try $0.rows.map(DeviceReference.init)) }
    }

    func rename(
        _ device: DeviceReference, displayName: String, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        let event = AuditEvent(.deviceRenamed, of: device.account, device.id, by: actor)
        return try writing { transaction in
            try transaction.run([Self.locking(device.account)])
            try checkActor(actor, of: device.account, transaction)
            let found = try transaction.run([
                PostgresStatement(
                    "UPDATE ubiquity.device SET title = $3 WHERE account = $1 AND id = $2",
                    device.values + [.bytes(Data(displayName.utf8))]
                ), PostgresAudit.reading(event),
            ])
            guard found[0].changes == 1 else { return false }
            // After a commit in doubt the log may count it twice.
            try transaction.run(PostgresAudit.writing(event, at: now, after: found[1]))
            return true
        }
    }

    /// Locks the account's stores, so that no push of the device is committed afterwards.
    func revoke(
        _ device: DeviceReference, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Set<DeviceReference> {
        try remove([device], .deviceRevoked, now: now, by: actor)
    }

    func removeDevices(expiredBy time: Int64, now: Int64) throws(StorageError) -> Int {
        var count = 0
        while true {
            let statement = PostgresStatement(
                """
                SELECT account, id FROM ubiquity.device WHERE expires <= $1
                ORDER BY account, id LIMIT $2
                """, .integer(time), .integer(Int64(Self.removedAtOnce)))
            // What cannot be read stays, and ends this time when it is met.
            let devices = try reading(statement) { result in
                result.rows.compactMap { try? DeviceReference($0) }
            }
            for (_, devices) in Dictionary(grouping: devices, by: \.account) {
                count += try remove(devices, .deviceRemoved, now: now, by: .housekeeping).count
            }
            guard devices.count == Self.removedAtOnce else { return count }
        }
    }

    private static let removedAtOnce = 256

    /// Removes devices, and what ends with them.
    /// - Parameter devices: All of one account.
    /// - Returns: Those that were there.
    private func remove(
        _ devices: [DeviceReference], _ action: AuditAction, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Set<DeviceReference> {
        guard let account = devices.first?.account else { return [] }
        // Those that some attempt found. What the last attempt does not find was removed by an
        // earlier one, whose commit was in doubt.
        var there: Set<DeviceID> = []
        try writing { transaction in
            try transaction.run([Self.locking(account)])
            // An earlier attempt, whose commit is in doubt, may have signed out the actor itself.
            if !transaction.mayBeRepeated || !devices.contains(where: { $0.id == actor.device }) {
                try checkActor(actor, of: account, transaction)
            }
            let ending = try Self.ending(with: devices.map(\.id), of: account, transaction)
            let owned: [PostgresValue] = [.text(account.string), .integers(ending.map(\.bits))]
            let found = try transaction.run(
                [
                    Self.lockingStores(of: account),
                    PostgresStatement(
                        """
                        DELETE FROM ubiquity.device WHERE account = $1 AND id = ANY($2)
                        RETURNING id
                        """, owned
                    ),
                    PostgresStatement(
                        "DELETE FROM ubiquity.passed WHERE account = $1 AND device = ANY($2)", owned
                    ),
                ] + Self.removingCodes(madeBy: owned))
            let removed = try found[1].rows.map { try $0.device(0) }
            if transaction.mayBeRepeated { there.formUnion(removed) } else { there = Set(removed) }
            try PostgresAudit.record(
                removed.map { id in
                    AuditEntry(AuditEvent(action, of: account, id, by: actor), at: now)
                }, transaction)
        }
        let removed = Set(there.map { DeviceReference(account: account, id: $0) })
        announce(removed.map { .revoked($0) })
        return removed
    }

    /// Finds the devices that end with others, these included.
    private static func ending(
        with devices: [DeviceID], of account: AccountID, _ transaction: PostgresTransaction
    ) throws -> [DeviceID] {
        let added = try transaction.run(
            "SELECT id, adder FROM ubiquity.device WHERE account = $1 AND adder IS NOT NULL",
            .text(account.string)
        ).rows
        let adders = try added.map { (try $0.device(0), try $0.device(1)) }
        return Array(
            PairingRule.ending(with: Set(devices), Dictionary(adders) { first, _ in first }))
    }

    /// The rows of the devices are locked first, in order, so that none of them is removed before
    /// `passed` has its rows.
    func note(_ lastSeen: LastSeenUpdate) throws(StorageError) {
        guard !lastSeen.isEmpty else { return }
        let passed = lastSeen.passed.filter { $0.key.device.account == $0.key.store.account }
        let (clocks, versions) = (Array(lastSeen.clocks), Array(lastSeen.versions))
        let devices = Array(
            Set(lastSeen.seenMilliseconds.keys).union(passed.keys.map(\.device))
                .union(clocks.map(\.key)).union(versions.map(\.key)))
        let seen = Array(lastSeen.seenMilliseconds)
        let stores = Set(passed.keys.map(\.store)).sorted()
        try writing { transaction in
            // Another database may have taken the place of the one in which this was said.
            let looks = PostgresStore.reading(stores, isLocking: false)
            let found =
                stores.isEmpty
                ? [:] : try PostgresStore.read(stores, from: transaction.run(looks)[0...1])
            let reached = passed.filter { said, position in
                let store = try? found[said.store]?.get()
                return store?.state.lineage.contains(position) ?? false
            }
            _ = try transaction.run([
                PostgresStatement(
                    """
                    SELECT 1 FROM unnest($1::text[], $2::bigint[]) AS noted (account, id)
                    JOIN ubiquity.device ON device.account = noted.account AND device.id = noted.id
                    ORDER BY device.account, device.id FOR NO KEY UPDATE OF device
                    """,
                    [
                        .texts(devices.map(\.account.string)), .integers(devices.map(\.id.bits)),
                    ]
                ),
                PostgresStatement(
                    """
                    UPDATE ubiquity.device SET seen = noted.seen
                    FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS noted (account, id, seen)
                    WHERE device.account = noted.account AND device.id = noted.id
                        AND device.seen < noted.seen
                    """,
                    [
                        .texts(seen.map(\.key.account.string)), .integers(seen.map(\.key.id.bits)),
                        .integers(seen.map(\.value)),
                    ]
                ),
                // Not the maximum of both: a device restored from its own backup has less.
                PostgresStatement(
                    """
                    INSERT INTO ubiquity.passed (account, store, device, revision)
                    SELECT store.account, store.number, device.id, noted.revision
                    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[])
                        AS noted (account, identifier, device, revision)
                    JOIN ubiquity.store ON store.account = noted.account
                        AND store.identifier = noted.identifier
                    JOIN ubiquity.device ON device.account = noted.account
                        AND device.id = noted.device
                    ORDER BY store.account, store.number, device.id
                    ON CONFLICT (account, store, device) DO UPDATE SET revision = excluded.revision
                    """,
                    [
                        .texts(reached.map(\.key.store.account.string)),
                        .texts(reached.map(\.key.store.identifier.string)),
                        .integers(reached.map(\.key.device.id.bits)),
                        .integers(reached.map(\.value.revision)),
                    ]
                ),
                PostgresStatement(
                    """
                    UPDATE ubiquity.device
                    SET clock_ahead = noted.ahead, clock_measured = noted.measured
                    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
                        AS noted (account, id, ahead, measured)
                    WHERE device.account = noted.account AND device.id = noted.id
                    """, .texts(clocks.map(\.key.account.string)),
                    .integers(clocks.map(\.key.id.bits)),
                    .integers(clocks.map(\.value.aheadMilliseconds)),
                    .integers(clocks.map(\.value.milliseconds))),
                PostgresStatement(
                    """
                    UPDATE ubiquity.device SET version = noted.version
                    FROM unnest($1::text[], $2::bigint[], $3::text[])
                        AS noted (account, id, version)
                    WHERE device.account = noted.account AND device.id = noted.id
                    """, .texts(versions.map(\.key.account.string)),
                    .integers(versions.map(\.key.id.bits)), .texts(versions.map(\.value))),
            ])
        }
    }
}

extension DeviceReference {
    /// - Parameter row: Begins with the account and the ID.
    fileprivate init(_ row: PostgresRow) throws(StorageError) {
        self.init(account: try row.account(0), id: try row.device(1))
    }

    /// The key of its row.
    fileprivate var values: [PostgresValue] { [.text(account.string), .integer(id.bits)] }
}
