// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Synchronization
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

/// An empty server, whose log has a link that makes the first account.
@Suite struct FirstRunTests {
    private let folder: TemporaryFolder
    private let bob = AccountName("bob")!

    init() throws { folder = try TemporaryFolder() }

    private static func code(_ text: String, expires: Int64 = 2_000) -> NewCode {
        NewCode(
            hash: SecretHash(of: text), account: .random(), expiresMilliseconds: expires)
    }

    /// Without an account.
    private func open(_ backend: Backend) throws -> any ServerStorage {
        let storage = try backend.open(in: folder)
        _ = try storage.erase(Sample.account.id, now: 1, by: .operatorLocally)
        return storage
    }

    // MARK: The storage

    @Test(arguments: Backend.allCases)
    func `a first code makes the account that it was made for, once`(backend: Backend) throws {
        let storage = try open(backend)
        let code = Self.code("first")
        #expect(try storage.addFirstCode(code, now: 1_000))
        let device = Sample.newDevice()
        #expect(throws: StorageError.codeInvalid, "without a name") {
            try storage.redeem(code.hash, by: device, now: 1_000)
        }
        let made = try storage.redeem(code.hash, by: device, naming: bob, now: 1_999)
        #expect(made.account.id == code.account && made.account.name == bob)
        #expect(try storage.account(named: bob) == made.account)
        #expect(try storage.devices(of: code.account) == [made.device])
        #expect(try storage.device(credential: device.credential) == made.device)
        #expect(throws: StorageError.codeInvalid) {
            try storage.redeem(
                code.hash, by: Sample.newDevice("2"), naming: AccountName("eve"), now: 1_999)
        }
        let events = try storage.auditEntries(before: nil, max: 2).map(\.event)
        #expect(events.map(\.action) == [.deviceSignedIn, .accountCreated])
        #expect(events.allSatisfy { $0.actor.device == made.device.reference.id })
    }

    @Test(arguments: Backend.allCases)
    func `where there is an account, no first code is kept, and none is good`(
        backend: Backend
    ) throws {
        let storage = try open(backend)
        #expect(try storage.addFirstCode(Self.code("first"), now: 1_000))
        let account = Account(id: .random(), name: bob, createdMilliseconds: 1_000)
        try storage.createAccount(account, accountsMax: 9, by: .operatorLocally)
        #expect(throws: StorageError.codeInvalid) {
            try storage.redeem(
                SecretHash(of: "first"), by: Sample.newDevice(), naming: AccountName("eve"),
                now: 1_000)
        }
        #expect(try storage.accounts(after: nil, max: 9) == [account])
        #expect(try !storage.addFirstCode(Self.code("second"), now: 1_000))
        // Nor does a name make another account of an ordinary code.
        let code = NewCode(
            hash: SecretHash(of: "ordinary"), account: account.id, expiresMilliseconds: 2_000)
        try storage.addCode(code, now: 1_000, by: .operatorLocally)
        #expect(throws: StorageError.codeInvalid) {
            try storage.redeem(
                code.hash, by: Sample.newDevice(), naming: AccountName("eve"), now: 1_000)
        }
        #expect(
            try storage.redeem(code.hash, by: Sample.newDevice(), now: 1_000).account == account)
    }

    @Test(arguments: Backend.allCases)
    func `first codes expire, and are few`(backend: Backend) throws {
        let storage = try open(backend)
        func isGood(_ text: String, now: Int64) throws -> Bool {
            do {
                _ = try storage.redeem(
                    SecretHash(of: text), by: Sample.newDevice(text), naming: bob, now: now)
                return true
            } catch StorageError.codeInvalid { return false }
        }
        _ = try storage.addFirstCode(Self.code("short"), now: 1_000)
        #expect(try !isGood("short", now: 2_000))
        for number in 0...PairingRule.firstCodesMax {
            _ = try storage.addFirstCode(
                Self.code("\(number)", expires: 9_000 + Int64(number)), now: 3_000)
        }
        #expect(try !isGood("0", now: 4_000))
        #expect(try isGood("\(PairingRule.firstCodesMax)", now: 4_000))
    }

    @Test(arguments: Backend.shared)
    func `of the codes of several nodes, one makes an account`(backend: Backend) throws {
        let nodes = try backend.openNodes(2, in: folder)
        _ = try nodes[0].erase(Sample.account.id, now: 1, by: .operatorLocally)
        for (number, node) in nodes.enumerated() {
            #expect(try node.addFirstCode(Self.code("\(number)"), now: 1_000))
        }
        let successes = Mutex(0)
        try atOnce(
            nodes.enumerated().map { number, node in
                {
                    do {
                        _ = try node.redeem(
                            SecretHash(of: "\(number)"), by: Sample.newDevice("\(number)"),
                            naming: AccountName("\(number)"), now: 1_000)
                        successes.withLock { $0 += 1 }
                    } catch StorageError.codeInvalid {}
                }
            })
        #expect(successes.withLock(\.self) == 1)
        #expect(try nodes[0].accounts(after: nil, max: 9).count == 1)
    }

    // MARK: The server

    @Test func `an empty server says so until the link in its log was used`() async throws {
        let log = LogRecorder()
        let server = try await RunningServer.start(in: folder, log: log)
        func isEmpty() async throws -> Bool {
            try await server.send("GET", "/v1/config").message(WireConfig.self).needsFirstAccount
        }
        #expect(try await isEmpty())
        let code = try #require(log.text.firstMatch(of: ##/http://a:\d+/#([0-9A-Z-]{14})/##)).output
            .1
        var message = WireSignIn()
        message.code = String(code)
        message.accountName = " ada"
        #expect(try await server.send("POST", "/v1/sign-in", message).status == 400)
        message.accountName = "ada"
        let answer = try await server.send("POST", "/v1/sign-in", message)
        #expect(try answer.message(WireSignInAnswer.self).accountName == "ada")
        #expect(try await !isEmpty())
        #expect(try await server.send("POST", "/v1/sign-in", message).status == 401)
        try await server.stop()
        let again = LogRecorder()
        try await RunningServer.start(in: folder, log: again).stop()
        #expect(!again.text.contains("/#"))
    }

    @Test func `the operator's first account ends the first run at once`() async throws {
        let server = try await RunningServer.start(in: folder)
        let answer = try await server.sendInFolder(
            "POST", "/v1/accounts", body: Array(#"{"name": "ada"}"#.utf8),
            headers: ["Content-Type": "application/json"])
        #expect(answer.status == 200)
        let config = try await server.send("GET", "/v1/config").message(WireConfig.self)
        #expect(!config.needsFirstAccount)
        try await server.stop()
    }

    @Test func `a server without the page makes no link`() async throws {
        let log = LogRecorder()
        let server = try await RunningServer.start(in: folder, log: log) { $0.servesPage = false }
        let config = try await server.send("GET", "/v1/config").message(WireConfig.self)
        #expect(!config.needsFirstAccount)
        try await server.stop()
        #expect(!log.text.contains("/#"))
    }
}

struct ServerAddressTests {
    @Test(arguments: [
        ("127.0.0.1", false, [String](), "http://127.0.0.1:8080"),
        ("0.0.0.0", true, [], "https://192.168.1.20:8080"),
        ("::", true, [], "https://192.168.1.20:8080"),
        ("0.0.0.0", false, [], "http://localhost:8080"),
        ("10.0.0.7", true, [], "https://10.0.0.7:8080"),
        ("::1", true, [], "https://[::1]:8080"),
        ("::", true, ["sync.example", "other"], "https://sync.example:8080"),
    ])
    func `a server's address is what its settings say`(
        host: String, isTLS: Bool, names: [String], expected: String
    ) {
        var settings = ServerSettings(dataFolder: "")
        (settings.host, settings.hostNames) = (host, names)
        settings.network = {
            LocalNetwork(
                [InterfaceAddress("lan0", IPAddress("192.168.1.20")!)], defaultInterface: nil)
        }
        settings.tls = isTLS ? ServerTLS(certificatePath: "", keyPath: "") : nil
        #expect(settings.address(port: 8080) == expected)
    }

    @Test func `only a local network's server names further addresses`() throws {
        var settings = ServerSettings(dataFolder: "")
        (settings.host, settings.isHouse) = ("0.0.0.0", true)
        let addresses = [
            InterfaceAddress("lan0", try #require(IPAddress("192.168.1.20"))),
            InterfaceAddress("lan1", try #require(IPAddress("192.168.7.20"))),
        ]
        settings.network = { LocalNetwork(addresses, defaultInterface: "lan0") }
        #expect(settings.address(port: 8080) == "https://192.168.1.20:8080")
        let others = settings.otherAddresses(port: 8080)
        #expect(others.map(\.address) == ["https://192.168.7.20:8080"])
        #expect(others.map(\.interface) == ["lan1"])
        #expect(settings.otherAddresses(port: 0).isEmpty)
        settings.hostNames = ["sync.example"]
        #expect(settings.otherAddresses(port: 8080).isEmpty)
        (settings.hostNames, settings.isHouse) = ([], false)
        #expect(settings.otherAddresses(port: 8080).isEmpty)
    }

    @Test func `behind a proxy, a server's address is its first name, with TLS`() throws {
        var settings = ServerSettings(dataFolder: "")
        settings.trustedProxies = [try #require(AddressRange("127.0.0.1"))]
        #expect(settings.address(port: 8080) == "http://127.0.0.1:8080")
        settings.hostNames = ["sync.example"]
        #expect(settings.address(port: 8080) == "https://sync.example")
    }
}
