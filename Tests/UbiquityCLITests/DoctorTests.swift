// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore
import UbiquityServer

@testable import UbiquityCLI

/// Tests the finding for each set of facts: the only one that is not "ok".
struct DoctorTests {
    // MARK: A device

    private var device: DeviceFacts {
        var contact = DeviceFacts.Contact(host: "ubiquity.example", port: 443, isEncrypted: true)
        contact.name = .success
        contact.connection = .success
        contact.server = .success
        contact.credential = .valid
        contact.clock = (differenceMilliseconds: 40, uncertaintyMilliseconds: 20)
        return DeviceFacts(
            home: .folder(path: "/home/ada", mode: 0o700, isOwn: true),
            signIn: .account(name: "ada", server: "https://ubiquity.example", device: "laptop"),
            contact: contact, identifier: .named("TEAM.notes", source: "--store"),
            stores: [store()], freeBytes: 10 << 30)
    }

    private func store(
        _ change: (inout DeviceFacts.Store.Content) -> Void = { _ in }
    ) -> DeviceFacts.Store {
        var link = LinkStatus()
        link.lastSync = 1_800_000_000_000
        var content = DeviceFacts.Store.Content(
            usage: Usage(bytes: 100, keys: 3), limits: StoreLimits(), pendingCount: 0,
            refusedKeys: [], link: link)
        change(&content)
        return DeviceFacts.Store(identifier: "TEAM.notes", content: .success(content))
    }

    private func findings(_ change: (inout DeviceFacts) -> Void) -> [Finding] {
        var facts = device
        change(&facts)
        return facts.findings.filter { $0.verdict != .ok }
    }

    private func expect(
        _ check: String, _ verdict: Finding.Verdict, saying words: String,
        _ location: SourceLocation = #_sourceLocation, where change: (inout DeviceFacts) -> Void
    ) {
        let findings = findings(change)
        #expect(findings.map(\.check) == [check], sourceLocation: location)
        #expect(findings.first?.verdict == verdict, sourceLocation: location)
        let sentence = findings.first?.sentence ?? ""
        #expect(sentence.contains(words), sourceLocation: location)
    }

    private func waiting(
        _ change: @escaping (inout DeviceFacts, inout DeviceFacts.Store.Content) -> Void
    ) -> String {
        findings { facts in
            var content: DeviceFacts.Store.Content?
            facts.stores = [store { content = $0 }]
            guard var content else { return }
            content.pendingCount = 1
            change(&facts, &content)
            facts.stores[0].content = .success(content)
        }.first { $0.check == "waiting" }?.sentence ?? ""
    }

    @Test func `sync is only suggested if nothing is known to prevent sending`() {
        #expect(waiting { _, _ in }.hasSuffix("`ubiquity sync` sends it now."))
        let refused = waiting { facts, content in
            facts.contact?.credential = .refused
            content.link.lastError = "The credential was revoked"
        }
        #expect(refused.hasSuffix("it is sent when this device is signed in again."))
        let unasked = waiting { facts, content in
            facts.contact = nil
            content.link.state = .unauthorized
        }
        #expect(unasked.hasSuffix("it is sent when this device is signed in again."))
        let signedOut = waiting { facts, _ in facts.signIn = .none }
        #expect(
            signedOut.hasSuffix(
                "1 key waits until this device is signed in; if it was before, to the same account."
            ))
        let confined = waiting { facts, _ in
            facts.stores[0].refusal = "The credential is confined"
        }
        #expect(confined.hasSuffix("this device may not send it."))
        let failed = waiting { _, content in content.link.lastError = "nobody answers" }
        #expect(failed.hasSuffix("`ubiquity sync` tries again."))
    }

    @Test func `what waits for ever is named, with the way out`() throws {
        let value = PropertyListValue.data([UInt8](repeating: 0, count: 1_000))
        let write = PendingWrite(
            record: Record(
                key: try Key("big"), content: .value(value),
                stamp: Stamp(HybridTimestamp(rawValue: 1), .unassigned)), transaction: 1)
        expect("unsendable", .problem, saying: "\"big\", 1259 bytes, cannot be sent: the server") {
            guard case .success(var content)? = $0.stores[0].content else { return }
            content.unsendable = UnsendableTransaction(of: [write], bytesMax: 1_258)
            $0.stores[0].content = .success(content)
        }
        #expect(UnsendableTransaction(of: [write], bytesMax: 1_259) == nil)
        #expect(UnsendableTransaction(of: [write], bytesMax: .max, refusedBytes: 1_259) != nil)
    }

    @Test func `a device that is confined to other stores is told so`() {
        expect("access", .problem, saying: "does not allow this device to access this store") {
            $0.stores[0].refusal = "The credential is confined to some stores"
        }
    }

    @Test func `a working device has no findings but ok`() {
        #expect(findings { _ in }.isEmpty)
        #expect(device.findings.count == 14)
    }

    @Test func `what is wrong with the folder`() {
        expect("home", .problem, saying: "chmod 700 /h") {
            $0.home = .folder(path: "/h", mode: 0o755, isOwn: true)
        }
        expect("home", .problem, saying: "chown") {
            $0.home = .folder(path: "/h", mode: 0o700, isOwn: false)
        }
        expect("home", .note, saying: "no folder /h yet") {
            $0.home = .missing(path: "/h", canBeMade: true)
        }
        expect("home", .problem, saying: "no folder /h, and it cannot be made") {
            $0.home = .missing(path: "/h", canBeMade: false)
        }
        expect("home", .problem, saying: "network file system (nfs4)") {
            $0.fileSystem = .network("nfs4")
        }
        expect("home", .note, saying: "of the type bindfs") { $0.fileSystem = .unknown("bindfs") }
        expect("disk", .problem, saying: "make room") { $0.freeBytes = 1 << 20 }
        expect("disk", .note, saying: "nearly full") { $0.freeBytes = 100 << 20 }
        expect("watches", .note, saying: "max_user_instances") { $0.watchFailure = "no room" }
    }

    @Test func `what is wrong with the sign-in`() {
        expect("sign-in", .problem, saying: "chmod 600") {
            $0.signIn = .unreadable("Make it readable only by you (chmod 600).")
        }
        expect("sign-in", .note, saying: "ubiquity sign-in") {
            $0.signIn = .none
            $0.contact = nil
        }
        expect("credential", .problem, saying: "`ubiquity sign-in --replace`") {
            $0.contact?.credential = .refused
        }
        expect("credential", .note, saying: "answered 503") {
            $0.contact?.credential = .unknown("it answered 503")
        }
    }

    @Test func `whether the device has the key of a sealed account`() {
        expect("sealing", .problem, saying: "`ubiquity unlock` gets it") { $0.sealing = .locked }
        expect("sealing", .problem, saying: "`ubiquity encryption status`") {
            $0.sealing = .restored
        }
    }

    @Test func `which step towards the server fails`() {
        expect("name", .problem, saying: "spelt right") {
            $0.contact?.name = .failure("unknown")
            $0.contact?.connection = nil
            $0.contact?.server = nil
            $0.contact?.credential = nil
            $0.contact?.clock = nil
        }
        expect("connection", .problem, saying: "port 443 (connection refused)") {
            $0.contact?.connection = .failure("connection refused")
            $0.contact?.server = nil
            $0.contact?.credential = nil
            $0.contact?.clock = nil
        }
        expect("server", .problem, saying: "not a Ubiquity server") {
            $0.contact?.server = .failure("it is not a Ubiquity server")
            $0.contact?.credential = nil
            $0.contact?.clock = nil
        }
    }

    @Test(arguments: ["127.0.0.1", "localhost", "::1"])
    func `no encryption is needed on one machine`(_ host: String) {
        let findings = findings {
            $0.contact?.isEncrypted = false
            $0.contact?.host = host
        }
        #expect(findings.isEmpty)
    }

    /// A name is not this machine's because it begins as one of its addresses does.
    @Test(arguments: ["u.example", "127.evil.com", "127.0.0.1.evil.com", "localhost.evil.com"])
    func `an unencrypted connection over the network is a problem`(_ host: String) {
        expect("encryption", .problem, saying: "https") {
            $0.contact?.isEncrypted = false
            $0.contact?.host = host
        }
    }

    @Test func `a clock is wrong by more than the answer took`() {
        expect("clock", .note, saying: "60 seconds ahead of") {
            $0.contact?.clock = (differenceMilliseconds: 60_000, uncertaintyMilliseconds: 50)
        }
        expect("clock", .note, saying: "60 seconds behind") {
            $0.contact?.clock = (differenceMilliseconds: -60_000, uncertaintyMilliseconds: 50)
        }
        let slow = findings {
            $0.contact?.clock = (differenceMilliseconds: 60_000, uncertaintyMilliseconds: 59_000)
        }
        #expect(slow.isEmpty)
    }

    @Test func `what is wrong with a store`() {
        expect("identifier", .problem, saying: "is not a store identifier") {
            $0.identifier = .invalid("\"a b\" is not a store identifier")
        }
        expect("identifier", .note, saying: "UBIQUITY_KVSTORE_IDENTIFIER") {
            $0.identifier = .none
            $0.stores = []
        }
        expect("store", .problem, saying: "damaged") {
            $0.stores[0].content = .failure(DeviceFacts.LocalFailure(sentence: "It is damaged."))
        }
        expect("store", .note, saying: "no program has opened") { $0.stores[0].content = nil }
        expect("waiting", .note, saying: "2 keys wait to be sent") {
            $0.stores = [store { $0.pendingCount = 2 }]
        }
        expect("waiting", .note, saying: "`ubiquity sync`") {
            $0.stores = [store { $0.pendingCount = 1 }]
        }
        expect("refused", .note, saying: "2 writes, of \"a\"; see `ubiquity history a --store ") {
            $0.stores = [store { $0.refusedKeys = [try! Key("a"), try! Key("a")] }]
        }
        expect("room", .note, saying: "nearly full") {
            $0.stores = [store { $0.usage.keys = 1_000 }]
        }
        expect("room", .problem, saying: "it is full") {
            $0.stores = [store { $0.usage.bytes = 1_048_576 }]
        }
    }

    @Test func `a finding is one line, whatever SQLite says`() {
        let finding = Finding.problem(
            "x", "damaged (*** in database main ***\nPage 2: a\nPage 3: b)")
        #expect(finding.sentence == "damaged (Page 2: a; Page 3: b)")
    }

    @Test func `the process that holds a store's connection is named`() {
        var facts = device
        facts.stores[0].lease = .held(by: "notes (4711)")
        #expect(facts.findings.contains { $0.sentence.contains("notes (4711) holds") })
    }

    @Test func `a stopped process that holds it is a problem, and is named`() {
        var facts = device
        facts.stores[0].lease = .held(by: "notes (4711)", isStopped: true)
        let finding = facts.findings.first { $0.sentence.contains("notes (4711)") }
        #expect(finding?.sentence.contains("is stopped") == true)
        #expect(finding?.verdict == .problem)
    }

    // MARK: A server

    private func entry(
        _ name: String, mode: Int = 0o600, owner: UInt32 = 1, size: Int = 1 << 20
    ) -> DataFolderInspection.Entry {
        DataFolderInspection.Entry(path: "/srv/\(name)", mode: mode, owner: owner, size: size)
    }

    private var server: ServerFacts {
        var inspection = DataFolderInspection(dataFolder: "/nowhere/to/be/seen")
        inspection.folder = entry("", mode: 0o700)
        inspection.canLook = true
        inspection.database = entry("ubiquity.sqlite")
        inspection.credential = entry("operator-credential")
        inspection.isRunning = true
        inspection.content = .success(DataFolderInspection.Database())
        return ServerFacts(
            inspection: inspection, freeBytes: 10 << 30, openFilesMax: 65_536,
            connectionsMax: 16_384, now: 1_800_000_000_000)
    }

    private func expectServer(
        _ check: String, _ verdict: Finding.Verdict, saying words: String,
        _ location: SourceLocation = #_sourceLocation, where change: (inout ServerFacts) -> Void
    ) {
        var facts = server
        change(&facts)
        let findings = facts.findings.filter { $0.verdict != .ok }
        #expect(findings.map(\.check) == [check], sourceLocation: location)
        #expect(findings.first?.verdict == verdict, sourceLocation: location)
        let sentence = findings.first?.sentence ?? ""
        #expect(sentence.contains(words), sourceLocation: location)
    }

    @Test func `a working server has no findings but ok`() {
        #expect(server.findings.allSatisfy { $0.verdict == .ok })
        #expect(server.findings.count == 8)
    }

    @Test func `what is wrong with a server's folder`() {
        expectServer("folder", .problem, saying: "--data") { $0.inspection.folder = nil }
        expectServer("folder", .problem, saying: "sudo -u") { $0.inspection.canLook = false }
        expectServer("database", .problem, saying: "ubiquity restore") {
            $0.inspection.database = nil
        }
        expectServer("folder", .problem, saying: "chmod 700") {
            $0.inspection.folder = entry("", mode: 0o750)
        }
        expectServer("database-mode", .problem, saying: "chmod 600") {
            $0.inspection.database = entry("ubiquity.sqlite", mode: 0o644)
        }
        expectServer("database-mode", .problem, saying: "chown") {
            $0.inspection.database = entry("ubiquity.sqlite", owner: 0)
        }
        expectServer("credential", .problem, saying: "write a new one") {
            $0.inspection.credential = entry("operator-credential", mode: 0o640)
        }
        expectServer("credential", .note, saying: "ubo_") { $0.inspection.credential = nil }
    }

    @Test func `what is wrong with a server's database`() {
        expectServer("database", .problem, saying: "Restore it from a backup") {
            $0.inspection.content = .failure(.databaseDamaged(path: "/srv", reason: "a page"))
        }
        expectServer("database", .problem, saying: "2 records in the database cannot be read") {
            var content = DataFolderInspection.Database()
            content.unreadable = 2
            $0.inspection.content = .success(content)
        }
        expectServer("running", .note, saying: "No server") { $0.inspection.isRunning = false }
        expectServer("running", .note, saying: "as the user") { $0.inspection.isRunning = nil }
        expectServer("log", .note, saying: "300 MB") {
            $0.inspection.log = entry("ubiquity.sqlite-wal", size: 300 << 20)
        }
        expectServer("clock", .problem, saying: "set back") {
            var content = DataFolderInspection.Database()
            content.newestWrite = 1_800_000_200_000
            $0.inspection.content = .success(content)
        }
        expectServer("clock", .problem, saying: "in the past") { $0.now = 1_000 }
    }

    @Test func `what is wrong with a server's machine`() {
        expectServer("disk", .problem, saying: "make room") { $0.freeBytes = 1 << 20 }
        expectServer("disk", .note, saying: "a backup") {
            $0.freeBytes = 100 << 20
            $0.inspection.database = entry("ubiquity.sqlite", size: 200 << 20)
        }
        expectServer("open-files", .note, saying: "LimitNOFILE=") { $0.openFilesMax = 1_024 }
    }

    // MARK: A database

    private var database: DatabaseInspection {
        var database = DatabaseInspection()
        database.tables = .ours(version: 1, known: 1)
        database.version = 150_020
        database.versionText = "15.20"
        database.connections = 5
        database.standbys = 1
        database.synchronousStandbys = "ANY 1 (b, c)"
        return database
    }

    private func expectDatabase(
        _ check: String, _ verdict: Finding.Verdict, saying words: String,
        _ location: SourceLocation = #_sourceLocation,
        where change: (inout DatabaseInspection) -> Void
    ) {
        var inspection = database
        change(&inspection)
        let findings = DatabaseFacts(.success(inspection)).findings.filter { $0.verdict != .ok }
        #expect(findings.map(\.check) == [check], sourceLocation: location)
        #expect(findings.first?.verdict == verdict, sourceLocation: location)
        let sentence = findings.first?.sentence ?? ""
        #expect(sentence.contains(words), "\(sentence)", sourceLocation: location)
    }

    @Test func `a sound database has no findings but ok`() {
        let findings = DatabaseFacts(.success(database)).findings
        #expect(findings.allSatisfy { $0.verdict == .ok })
        #expect(findings.count == 6)
    }

    @Test func `why a database cannot be reached`() {
        let findings = DatabaseFacts(.failure(.readOnly)).findings
        #expect(findings.map(\.verdict) == [.problem])
        #expect(findings[0].sentence.contains("put all hosts"))
    }

    @Test func `which settings of a database endanger data`() {
        expectDatabase("fsync", .problem, saying: "fsync = on") { $0.isFlushing = false }
        expectDatabase("full-page-writes", .problem, saying: "full_page_writes = on") {
            $0.hasFullPages = false
        }
        expectDatabase("synchronous-commit", .note, saying: "is off") {
            $0.synchronousCommit = "off"
        }
        expectDatabase("autovacuum", .problem, saying: "autovacuum = on") {
            $0.isVacuuming = false
        }
        expectDatabase("tls", .problem, saying: "sslmode=verify-full") {
            $0.isOpenToEavesdroppers = true
        }
        expectDatabase("role", .note, saying: "superuser") { $0.isSuperuser = true }
        expectDatabase("checksums", .note, saying: "pg_checksums") { $0.hasChecksums = false }
    }

    @Test func `what keeps servers from a database`() {
        expectDatabase("version", .problem, saying: "version 15") { $0.version = 140_010 }
        expectDatabase("encoding", .problem, saying: "UTF8") { $0.encoding = "SQL_ASCII" }
        expectDatabase("tables", .note, saying: "ubiquity database migrate") { $0.tables = .none }
        expectDatabase("tables", .problem, saying: "GRANT CREATE") {
            $0.tables = .none
            $0.mayCreate = false
        }
        expectDatabase("tables", .problem, saying: "needs format 2") {
            $0.tables = .ours(version: 1, known: 2)
        }
        expectDatabase("tables", .problem, saying: "another program") {
            $0.tables = .unusable("it is another program's")
        }
        expectDatabase("connections", .problem, saying: "max_connections") {
            $0.connections = 90
        }
        expectDatabase("clock", .problem, saying: "2500 ms behind") {
            $0.clockAhead = -2_500
            $0.clockPrecision = 3
        }
        // Nobody can tell.
        var slow = database
        (slow.clockAhead, slow.clockPrecision) = (2_500, 2_000)
        #expect(DatabaseFacts(.success(slow)).findings.allSatisfy { $0.verdict == .ok })
    }

    @Test func `what a database lacks that would survive its disk`() {
        expectDatabase("standby", .note, saying: "No standby") {
            ($0.standbys, $0.synchronousStandbys) = (0, "")
        }
        expectDatabase("standby", .problem, saying: "Start the standby") { $0.standbys = 0 }
        expectDatabase("standby", .note, saying: "--require-synchronous-standby") {
            $0.synchronousStandbys = ""
        }
    }
}
