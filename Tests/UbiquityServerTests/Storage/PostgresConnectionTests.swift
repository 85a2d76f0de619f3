// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

@Suite(.enabled(if: PostgresDatabase.isAvailable, "PostgreSQL 15 is not installed"))
@OwnThread struct PostgresConnectionTests {
    private let folder: TemporaryFolder
    init() throws { folder = try TemporaryFolder() }

    private func connection() throws -> PostgresConnection {
        try PostgresConnection(.patient(PostgresDatabase(in: folder).url))
    }

    private func run(
        _ connection: PostgresConnection, _ statements: SQLStatement...
    ) throws(PostgresFailure) -> [PostgresResult] {
        try connection.run(statements, milliseconds: 60_000)
    }

    @Test func `values come back as they went`() throws {
        let connection = try connection()
        let bytes = Data((0...255).map { UInt8($0) })
        let row = try run(
            connection,
            SQLStatement(
                "SELECT $1, true, $2, $3, $4, $5::text, $6::bytea", .integer(.min),
                .text("ä\n\u{1F600}"), .bytes(bytes), .bytes(Data()), .null,
                .optional(nil as String?))
        )[0].rows[0]
        #expect(try row.integer(0) == .min)
        #expect(try row.boolean(1))
        #expect(try row.text(2) == "ä\n\u{1F600}")
        #expect(try row.bytes(3) == bytes)
        #expect(try row.bytes(4) == Data())
        #expect(row.isNull(5) && row.isNull(6) && row.isNull(7) && !row.isNull(4))
        #expect(throws: StorageError.unreadable) { try row.text(0) }
        #expect(throws: StorageError.unreadable) { try row.integer(5) }
        #expect(throws: StorageError.unreadable) { try row.integer(99) }
    }

    @Test func `arrays come back as rows`() throws {
        let rows = try run(
            try connection(),
            SQLStatement(
                "SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[])",
                .integers([1, nil, -1]), .texts(["", "b", nil]), .blobs([nil, Data(), Data([0])])),
            SQLStatement("SELECT * FROM unnest($1::bigint[])", .integers([]))
        )
        #expect(rows.map(\.rows.count) == [3, 0])
        let found = rows[0].rows
        #expect(try [found[0], found[2]].map { try $0.integer(0) } == [1, -1])
        #expect(try found.map { try $0.textIfAny(1) } == ["", "b", nil])
        #expect(try found.map { try $0.bytesIfAny(2) } == [nil, Data(), Data([0])])
        #expect(found[1].isNull(0))
    }

    @Test func `a flight may be large in both directions at once`() throws {
        let connection = try connection()
        let bytes = Data(repeating: 7, count: 16 << 20)
        let statement = SQLStatement("SELECT $1 || $1", .bytes(bytes))
        let results = try connection.run(
            [statement, statement, statement], milliseconds: 300_000)
        for result in results { #expect(try result.rows[0].bytes(0).count == 32 << 20) }
    }

    @Test func `after a statement that fails, no other of its flight runs`() throws {
        let connection = try connection()
        _ = try run(connection, SQLStatement("CREATE TABLE public.t (n bigint)"))
        let insert = SQLStatement("INSERT INTO public.t VALUES ($1)", .integer(1))
        let failure = #expect(throws: PostgresFailure.self) {
            try run(
                connection, SQLStatement("BEGIN"), insert,
                SQLStatement("SELECT 1 / (1 - $1)", .integer(1)), insert,
                SQLStatement("COMMIT"))
        }
        #expect(failure?.state == "22012")
        #expect(!connection.isBroken)
        // It is still in the failed transaction, and a commit is answered so.
        #expect(try run(connection, SQLStatement("COMMIT"))[0].tag == "ROLLBACK")
        let transaction = PostgresTransaction(
            connection, [SQLStatement("BEGIN")], milliseconds: 60_000)
        #expect(throws: PostgresFailure.self) { try transaction.run("SELECT nothing") }
        let refused = #expect(throws: PostgresFailure.self) { try transaction.commit() }
        #expect(refused?.isInDoubt == false)
        let count = try run(connection, SQLStatement("SELECT count(*) FROM public.t"))
        #expect(try count[0].rows[0].integer(0) == 0)
    }

    @Test func `more statements than are kept prepared are prepared again`() throws {
        let connection = try connection()
        for number in 0..<450 {
            let results = try run(connection, SQLStatement("SELECT \(number)::bigint"))
            #expect(try results[0].rows[0].integer(0) == Int64(number))
        }
    }

    @Test func `a server that does not answer is given up`() throws {
        let server = try PostgresServer.started(settings: ["max_connections": "10"])
        let connection = try PostgresConnection(.patient(server.url()))
        server.freeze(true)
        let failure = #expect(throws: PostgresFailure.self) {
            try connection.run([SQLStatement("SELECT 1")], milliseconds: 50)
        }
        server.freeze(false)
        #expect(failure?.breaksConnection == true && failure?.isTransient == true)
        #expect(connection.isBroken)
        #expect(throws: PostgresFailure.self) {
            try connection.run([SQLStatement("SELECT 1")], milliseconds: 50)
        }
    }

    @Test func `a session is set up whatever its role's defaults are`() throws {
        let database = try PostgresDatabase(in: folder)
        let settings = [
            "synchronous_commit = local", "default_transaction_isolation = serializable",
            "client_min_messages = error", "search_path = public", "lock_timeout = 0",
        ]
        for setting in settings {
            try database.query("ALTER DATABASE \(database.name) SET \(setting)")
        }
        let connection = try PostgresConnection(PostgresSettings(url: database.url))
        let row = try run(
            connection,
            SQLStatement(
                """
                SELECT current_setting('synchronous_commit'),
                    current_setting('default_transaction_isolation'),
                    current_setting('client_min_messages'), current_setting('lock_timeout')
                """)
        )[0].rows[0]
        #expect(
            try (0..<4).map { try row.text($0) } == ["on", "read committed", "warning", "5s"])
    }

    @Test(arguments: ["p@ss", "secret"])
    func `no error tells the password`(password: String) throws {
        let database = try PostgresDatabase(in: folder)
        let url = try database.url.replacing(#/:[^:@]*@/#, with: ":\(password)@")
        for url in [url, url + "?nonsense=1", url.replacing("postgresql://", with: "postgresql:/")]
        {
            let error = #expect(throws: ServerStartError.self) {
                _ = try PostgresServerStorage.openForAdministration(.patient(url))
            }
            #expect(!"\(error!)".contains("ss@") && !"\(error!)".contains("secret"))
        }
    }
}
