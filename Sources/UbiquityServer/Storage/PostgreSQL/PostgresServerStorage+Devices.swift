// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

extension PostgresServerStorage {
    /// One round trip for all.
    func rights(
        of credentials: [SecretHash]
    ) throws(StorageError) -> [Result<DeviceRights?, StorageError>] {
        try reading(credentials.map { SQLStatement.device(credential: $0) }) { results, _ in
            results.map { result in
                Result { () throws(StorageError) in
                    try result.rows.first.map { row throws(StorageError) in try Device(row).rights }
                }
            }
        }
    }

    /// Reads the holdings of one moment, in one round trip.
    func holdings(of store: StoreReference, key: Key?) throws(StorageError) -> StoreHoldings {
        let name: [SQLValue] = [.text(store.account.string), .text(store.identifier.string)]
        let (condition, arguments) = PostgresVersions.entries(of: store, key: key)
        let statements =
            PostgresStore.reading([store], isLocking: false) + [
                .devices(of: store.account),
                SQLStatement(
                    """
                    SELECT p.device, p.revision FROM ubiquity.store s JOIN ubiquity.passed p
                        ON p.account = s.account AND p.store = s.number
                    WHERE s.account = $1 AND s.identifier = $2
                    """, name),
                SQLStatement(
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
        let statement = SQLStatement(
            """
            SELECT device.account, device.id
            FROM unnest($1::text[], $2::bigint[]) AS asked (account, id)
            JOIN ubiquity.device ON device.account = asked.account AND device.id = asked.id
            """, .texts(devices.map(\.account.string)), .integers(devices.map(\.id.bits)))
        return try reading(statement) { Set(try $0.rows.map(DeviceReference.init)) }
    }

    func removeDevices(expiredBy time: Int64, now: Int64) throws(StorageError) -> Int {
        var count = 0
        while true {
            let expired = SQLStatement.devices(expiredBy: time, max: Self.removedAtOnce)
            // What cannot be read stays, and ends this time when it is met.
            let devices = try reading(expired) { $0.rows.compactMap { try? DeviceReference($0) } }
            for (account, devices) in Dictionary(grouping: devices, by: \.account) {
                count += try remove(
                    devices, of: account, .deviceRemoved, now: now, by: .housekeeping
                ).count
            }
            guard devices.count == Self.removedAtOnce else { return count }
        }
    }

    private static let removedAtOnce = 256

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
                SQLStatement(
                    """
                    SELECT 1 FROM unnest($1::text[], $2::bigint[]) AS noted (account, id)
                    JOIN ubiquity.device ON device.account = noted.account AND device.id = noted.id
                    ORDER BY device.account, device.id FOR NO KEY UPDATE OF device
                    """,
                    [
                        .texts(devices.map(\.account.string)), .integers(devices.map(\.id.bits)),
                    ]
                ),
                SQLStatement(
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
                SQLStatement(
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
                SQLStatement(
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
                SQLStatement(
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
