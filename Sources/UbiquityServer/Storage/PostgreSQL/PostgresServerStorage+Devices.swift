// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

extension PostgresServerStorage {
    /// The columns of a ``Device``. Names are bytes, because PostgreSQL's texts cannot contain a zero
    /// byte.
    private static let deviceColumns = "account, id, title, created, seen, stores, expires"

    static func device(credential: SecretHash) -> PostgresStatement {
        PostgresStatement(
            "SELECT \(deviceColumns) FROM ubiquity.device WHERE credential = $1",
            [.bytes(credential.bytes)]
        )
    }

    func device(credential: SecretHash) throws(StorageError) -> Device? {
        try reading {
            try $0.run([Self.device(credential: credential)])[0].rows.first.map(Device.init)
        }
    }

    func devices(of account: AccountID) throws(StorageError) -> [Device] {
        try reading { transaction in
            try transaction.run(
                """
                SELECT \(Self.deviceColumns) FROM ubiquity.device WHERE account = $1
                ORDER BY created, id
                """, .text(account.string)
            ).rows.compactMap { try? Device($0) }
        }
    }

    func signedIn(
        among devices: Set<DeviceReference>
    ) throws(StorageError) -> Set<DeviceReference> {
        guard !devices.isEmpty else { return [] }
        return try reading { transaction in
            let rows = try transaction.run(
                """
                SELECT device.account, device.id
                FROM unnest($1::text[], $2::bigint[]) AS asked (account, id)
                JOIN ubiquity.device ON device.account = asked.account AND device.id = asked.id
                """, .texts(devices.map(\.account.string)), .integers(devices.map(\.id.bits))
            ).rows
            return Set(
                try rows.map { row in
                    DeviceReference(account: try row.account(0), id: try row.device(1))
                })
        }
    }

    func rename(
        _ device: DeviceReference, displayName: String, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        let event = AuditEvent(.deviceRenamed, of: device.account, device.id, by: actor)
        return try writing { transaction in
            let found = try transaction.run([
                Self.locking(device.account),
                PostgresStatement(
                    "UPDATE ubiquity.device SET title = $3 WHERE account = $1 AND id = $2",
                    device.values + [.bytes(Data(displayName.utf8))]
                ), PostgresAudit.reading(event),
            ])
            guard found[1].changes == 1 else { return false }
            // After a commit in doubt the log may count it twice.
            try transaction.run(PostgresAudit.writing(event, at: now, after: found[2]))
            return true
        }
    }

    /// Locks the account's stores, so that no push of the device is committed afterwards.
    func revoke(
        _ device: DeviceReference, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        try remove([device], .deviceRevoked, now: now, by: actor) == 1
    }

    func removeDevices(expiredBy time: Int64, now: Int64) throws(StorageError) -> Int {
        var count = 0
        while true {
            let devices = try reading { transaction in
                try transaction.run(
                    """
                    SELECT account, id FROM ubiquity.device WHERE expires <= $1
                    ORDER BY account, id LIMIT $2
                    """, .integer(time), .integer(Int64(Self.removedAtOnce))
                ).rows.map { row in
                    DeviceReference(account: try row.account(0), id: try row.device(1))
                }
            }
            for (_, devices) in Dictionary(grouping: devices, by: \.account) {
                count += try remove(devices, .deviceRemoved, now: now, by: .housekeeping)
            }
            guard devices.count == Self.removedAtOnce else { return count }
        }
    }

    private static let removedAtOnce = 256

    /// - Parameter devices: All of one account.
    /// - Returns: The number of those that were there.
    private func remove(
        _ devices: [DeviceReference], _ action: AuditAction, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Int {
        guard let account = devices.first?.account else { return 0 }
        let owned: [PostgresValue] = [.text(account.string), .integers(devices.map(\.id.bits))]
        // Those that some attempt found. What the last attempt does not find was removed by an
        // earlier one, whose commit was in doubt.
        var there: Set<DeviceID> = []
        try writing { transaction in
            let found = try transaction.run([
                Self.locking(account), Self.lockingStores(of: account),
                PostgresStatement(
                    "DELETE FROM ubiquity.device WHERE account = $1 AND id = ANY($2) RETURNING id",
                    owned
                ),
                PostgresStatement(
                    "DELETE FROM ubiquity.passed WHERE account = $1 AND device = ANY($2)", owned),
            ])
            let removed = try found[2].rows.map { try $0.device(0) }
            if transaction.mayBeRepeated { there.formUnion(removed) } else { there = Set(removed) }
            try PostgresAudit.record(
                removed.map { id in
                    AuditEntry(AuditEvent(action, of: account, id, by: actor), at: now)
                }, transaction)
        }
        announce(there.map { .revoked(DeviceReference(account: account, id: $0)) })
        return there.count
    }

    /// The rows of the devices are locked first, in order, so that none of them is removed before
    /// `passed` has its rows.
    func note(_ lastSeen: LastSeenUpdate) throws(StorageError) {
        guard !lastSeen.isEmpty else { return }
        let passed = lastSeen.passed.filter { $0.key.device.account == $0.key.store.account }
        let devices = Array(Set(lastSeen.seenMilliseconds.keys).union(passed.keys.map(\.device)))
        let seen = Array(lastSeen.seenMilliseconds)
        let reached = Array(passed)
        try writing { transaction in
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
                        .integers(reached.map(\.value)),
                    ]
                ),
            ])
        }
    }
}

extension DeviceReference {
    /// The key of its row.
    fileprivate var values: [PostgresValue] { [.text(account.string), .integer(id.bits)] }
}

extension Device {
    /// - Throws: ``StorageError/unreadable``.
    init(_ row: PostgresRow) throws(StorageError) {
        let reference = DeviceReference(
            account: try row.account(0), id: try row.device(1))
        self.init(
            rights: DeviceRights(
                reference: reference, stores: try StoreList.set(row.textIfAny(5)),
                expiresMilliseconds: row.isNull(6) ? nil : try row.time(6)),
            displayName: String(decoding: try row.bytes(2), as: UTF8.self),
            createdMilliseconds: try row.time(3), seenMilliseconds: try row.time(4))
    }
}
