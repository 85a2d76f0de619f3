// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import ProcessHarness
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// Databases of an earlier format are migrated.
@Suite(.enabled(if: PostgresDatabase.isAvailable, "PostgreSQL 15 is not installed"))
@OwnThread struct PostgresOlderFormatTests {
    private let folder: TemporaryFolder
    private let database: PostgresDatabase
    private let laptop = DeviceID(rawValue: 5)

    init() throws {
        folder = try TemporaryFolder()
        database = try PostgresDatabase(in: folder, isEmpty: true)
        try database.query(PostgresFormat1.schema)
        try database.query(PostgresFormat1.content)
    }

    private func state(_ storage: PostgresServerStorage) throws -> StoreState? {
        var found: StoreState?
        _ = try storage.versions(of: Sample.store, key: nil) { state, _ in
            found = state
            return []
        }
        return found
    }

    @Test func `a database of format 1 is served only when it has been migrated`() throws {
        let older = ServerStartError.database(.older(version: 1, known: PostgresSchema.version))
        let error = #expect(throws: ServerStartError.self) { try database.open() }
        #expect(error == older)
        let settings = try database.settings()
        let format = Int(PostgresSchema.version)
        #expect(try settings.migrate() == (1, format))
        #expect(try settings.migrate() == (format, format))
        // Nodes of format 1 would keep no history.
        #expect(try database.query("SELECT version, compatible FROM ubiquity.meta") == "2|2")
        #expect(try database.query("SELECT incarnation FROM ubiquity.meta") == "77")
        try database.open().close()
    }

    @Test func `a database of format 1 keeps all that was in it`() throws {
        _ = try database.settings().migrate()
        let storage = try database.open()
        #expect(try storage.accounts() == [Sample.account])
        let devices = try storage.devices(of: Sample.account.id)
        #expect(devices.map(\.displayName) == ["laptop", "sensor"])
        #expect(devices.map(\.rights.stores) == [nil, [Sample.store.identifier]])
        #expect(devices.map(\.rights.expiresMilliseconds) == [nil, 5_000])
        #expect(devices.allSatisfy { $0.clock == nil && $0.version == nil })
        let found = try storage.device(credential: SecretHash(of: "device5"))
        #expect(found == devices.first)
        let identities = try storage.identities(of: Sample.account.id)
        #expect(try identities.map { try storage.account(of: $0) } == [Sample.account])
        #expect(try storage.apps().map(\.identifier) == [Sample.store.identifier])
        let events = try storage.auditEntries(before: nil, max: 9).map(\.event)
        #expect(
            events == [
                AuditEvent(.deviceRenamed, of: Sample.account.id, laptop, by: .device(laptop))
            ])
        #expect(try storage.keys(since: nil) == ["a"])
        let state = try #require(try state(storage))
        #expect(state.usage == Usage(bytes: 8, keys: 1))
        #expect(state.lineage.position == Position(epoch: 7, revision: 3))
        #expect((state.deletions, state.folded) == (1, 1))
        // What was before there was a history is not known.
        #expect(
            state.history
                == HistoryState(floor: RecordVersion.Moment(revision: 3, milliseconds: 0)))
        let holdings = try storage.holdings(of: Sample.store, key: try Key("a"))
        #expect(holdings.passed == [laptop: 3, DeviceID(rawValue: 6): 2])
        #expect(holdings.entries.map(\.revision) == [2])
    }

    @Test func `a database of format 1 goes on with a history`() throws {
        _ = try database.settings().migrate()
        let storage = try database.open()
        let signedIn = try storage.redeem(
            SecretHash(of: "code"), by: Sample.newDevice("new"), now: 1_000)
        #expect(signedIn.device.rights.expiresMilliseconds == 61_000)
        let committed = try storage.commit(Sample.push(Sample.record("a", .integer(14), at: 500)))
        #expect(committed?.position.revision == 4)
        #expect(committed?.results == [.committed([.applied])])
        let versions = try storage.versions(of: Sample.store, key: try Key("a")) { _, lines in
            Array(lines.indices)
        }
        let values = try versions.map { try $0.record().content.value }
        #expect(Set(values) == [.integer(13), .integer(14)])
        let old = try versions.first { $0.line.ended != nil }?.version()
        #expect(old?.came == RecordVersion.Moment(revision: 2, milliseconds: 0))
        #expect(old?.ended == RecordVersion.Moment(revision: 4, milliseconds: 1_000))
        #expect(try storage.keys(since: nil) == ["a"])
    }
}
