// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

/// Tests the requests of the operator's page: searches, filters, sizes and metrics.
@Suite struct OperatorTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test(arguments: Backend.allCases)
    func `a search finds the accounts whose names contain a text, a page at a time`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        for name in ["bob", "Zoë", "100%_a", "<script>ada"] {
            let account = Account(id: .random(), name: AccountName(name)!, createdMilliseconds: 2)
            try storage.createAccount(account, accountsMax: 9, by: .operatorLocally)
        }
        func found(_ part: String, after name: String? = nil, max: Int = 9) throws -> [String] {
            try storage.accounts(after: name.map { AccountName($0)! }, containing: part, max: max)
                .map(\.name.string)
        }
        #expect(try found("ada") == ["<script>ada", "ada"])
        #expect(try found("ada", max: 1) == ["<script>ada"])
        #expect(try found("ada", after: "<script>ada") == ["ada"])
        #expect(try found("oë") == ["Zoë"])
        // Nothing in it is a pattern.
        #expect(try found("%_") == ["100%_a"])
        #expect(try found("ADA").isEmpty)
        #expect(try storage.accounts(after: nil, max: 9).count == 5)
    }

    @Test(arguments: Backend.allCases)
    func `the audit log is filtered by action and account`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let bob = Account(id: .random(), name: AccountName("bob")!, createdMilliseconds: 2)
        try storage.createAccount(bob, accountsMax: 9, by: .operatorLocally)
        for (number, account) in [Sample.account.id, bob.id, bob.id].enumerated() {
            let code = NewCode(
                hash: SecretHash(of: "\(number)"), account: account, expiresMilliseconds: 9_000)
            try storage.addCode(
                code, now: Int64(number) * 4_000_000, by: .operatorLocally)
        }
        func found(
            _ action: AuditAction?, _ account: AccountID?, before number: Int64? = nil, max: Int = 9
        ) throws -> [AuditEntry] {
            let filter = AuditFilter(action: action, account: account)
            let entries = try storage.auditEntries(before: number, filter, max: max)
            #expect(entries.allSatisfy { action == nil || action == $0.event.action })
            #expect(entries.allSatisfy { account == nil || account == $0.event.account })
            return entries
        }
        #expect(try found(nil, nil).count == 5)
        #expect(try found(.codeMade, nil).count == 3)
        #expect(try found(nil, bob.id).count == 3)
        let bobs = try found(.codeMade, bob.id)
        #expect(bobs.map(\.time) == [8_000_000, 4_000_000])
        #expect(try found(.codeMade, bob.id, before: bobs[0].number, max: 1) == [bobs[1]])
        #expect(try found(.accountErased, bob.id).isEmpty)
    }

    @Test func `a search or filter that cannot be one is refused`() async throws {
        try await withServer { server in
            for query in [
                "accounts?search=%00", "accounts?search=\(String(repeating: "a", count: 129))",
                "audit?deed=nothing", "audit?account=ada",
            ] {
                let answer = try await server.send(
                    "GET", "/v1/\(query)", credential: server.operatorCredential)
                #expect(answer.status == 400, "\(query)")
            }
        }
    }

    @Test func `the operator sees what an erasure would remove, and the server's metrics`()
        async throws
    {
        try await withServer { server in
            let device = try await server.newDevice()
            try await device.set("theme", "dark")
            let account = try await server.send(
                "GET", "/v1/accounts", credential: server.operatorCredential
            ).message(WireAccountList.self).accounts[0]
            let stores = try await server.send(
                "GET", "/v1/accounts/\(account.name)/stores",
                credential: server.operatorCredential
            ).message(WireStoreList.self).stores
            #expect(stores.map(\.identifier) == ["notes"])
            #expect(stores.first?.keys == 1)
            let metrics = try await server.send(
                "GET", "/v1/metrics", credential: server.operatorCredential)
            #expect(metrics.headers["content-type"]?.hasPrefix("text/plain; version=0.0.4") == true)
            #expect(metrics.text.contains("ubiquity_pushes_total 1\n"))
            #expect(metrics.text.contains(/ubiquity_database_bytes [1-9]/))
            #expect(metrics.text.contains(/ubiquity_node_info\{node="[^"]+\/[0-9]+"\} 1\n/))
            #expect(!metrics.text.contains("ubiquity_nodes "))
            let refused = try await server.send(
                "GET", "/v1/metrics", credential: device.credential)
            #expect(refused.status == 403)
        }
    }

    @Test(.enabled(if: PostgresDatabase.isAvailable, "PostgreSQL 15 is not installed"))
    func `a new credential for a database is accepted by a running node, which counts the nodes`()
        async throws
    {
        let settings = try PostgresDatabase(in: folder).settings()
        try await withServer(in: folder, { $0.database = settings }) { server in
            let credentials = try [
                OperatorCredential.renew(in: settings), OperatorCredential.renew(in: settings),
            ]
            try await until("the credential") {
                try await server.send("GET", "/v1/metrics", credential: credentials[1]).status
                    == 200
            }
            let former = try await server.send("GET", "/v1/metrics", credential: credentials[0])
            #expect(former.status == 401)
            let audit = try await server.send("GET", "/v1/audit", credential: credentials[1])
                .message(WireAuditTrail.self)
            #expect(audit.entries.map(\.deed) == ["operator-credential-replaced"])
            #expect(audit.entries.map(\.count) == [2])
            try await until("the node is counted") {
                let text = try await server.send(
                    "GET", "/v1/metrics", credential: credentials[1]
                ).text
                return text.contains("ubiquity_nodes 1\n")
                    && text.contains(/ubiquity_database_bytes [1-9]/)
            }
        }
    }
}
