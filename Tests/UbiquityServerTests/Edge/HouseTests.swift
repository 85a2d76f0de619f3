// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import SwiftASN1
internal import Synchronization
internal import Testing
internal import UbiquityCore
internal import UbiquityHTTP
internal import UbiquityWire
internal import X509

@testable internal import UbiquityServer

/// A server of a local network, which makes its keys and certificates itself.
@Suite(.serialized) struct HouseTests {
    private static let config =
        "GET /v1/config HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

    /// The addresses of the machine, which a test changes. Shared state: `texts`, by its mutex.
    private final class Addresses: Sendable {
        let texts = Mutex(["192.168.1.20"])

        var network: LocalNetwork {
            let found = texts.withLock(\.self).compactMap { IPAddress($0) }
            return LocalNetwork(
                found.map { InterfaceAddress("lan0", $0) }, defaultInterface: "lan0")
        }
    }

    private let folder: TemporaryFolder
    private let addresses = Addresses()
    private let clock = TestClock(uptime: ServerClock.system.uptime)

    init() throws { folder = try TemporaryFolder() }

    private func configure(_ settings: inout ServerSettings) {
        (settings.isHouse, settings.host, settings.clock) = (true, "0.0.0.0", clock.clock)
        settings.network = { [addresses] in addresses.network }
    }

    private func house(_ names: [String] = []) throws -> HouseIdentity {
        var settings = ServerSettings(dataFolder: folder.path)
        configure(&settings)
        settings.hostNames = names
        return try HouseIdentity(settings)
    }

    private func text(_ name: String) throws -> String {
        try String(contentsOfFile: folder.file("house/\(name)"), encoding: .utf8)
    }

    private func pin() throws -> String? { try TLSIdentity(house().tls).pin }

    private func remove(_ name: String) throws {
        try FileManager.default.removeItem(atPath: folder.file("house/\(name)"))
    }

    private func damage(_ name: String) throws {
        try Data("nothing".utf8).write(to: URL(fileURLWithPath: folder.file("house/\(name)")))
    }

    // MARK: The files

    @Test func `keys and certificates are made once, for their owner alone, and no root's key`()
        throws
    {
        let house = try house()
        let names = ["authority.crt", "issuer.crt", "issuer.key", "server.crt", "server.key"]
        let before = try names.map(text)
        #expect(try !house.renew())
        _ = try self.house()
        #expect(try names.map(text) == before)
        let all = try FileManager.default.contentsOfDirectory(atPath: folder.file("house"))
        #expect(all.sorted() == names)
        for name in names {
            let status = try #require(FileStatus(path: folder.file("house/\(name)")))
            #expect(status.mode == 0o600, "\(name)")
        }
        #expect(before[3].components(separatedBy: "BEGIN CERTIFICATE").count == 3)
        #expect(before[3].hasSuffix(before[1]))
    }

    @Test func `a new address makes a new certificate, with the same key and authority`() throws {
        let house = try house()
        let (pin, issuer, certificate) = try (pin(), text("issuer.crt"), text("server.crt"))
        #expect(pin?.hasPrefix("sha256//") == true)
        addresses.texts.withLock { $0 = ["10.0.0.7"] }
        #expect(try house.renew())
        #expect(try !house.renew())
        #expect(try text("server.crt") != certificate)
        #expect(try self.pin() == pin)
        #expect(try text("issuer.crt") == issuer)
    }

    @Test func `the server's certificate is renewed before it ends, and nothing else ever is`()
        throws
    {
        let house = try house()
        let lasting = ["authority.crt", "issuer.crt", "issuer.key", "server.key"]
        let before = try lasting.map(text)
        clock.advance(seconds: 250 * 86_400)
        #expect(try !house.renew())
        clock.advance(seconds: 30 * 86_400)
        #expect(try house.renew())
        // Also by a clock that is wrong: browsers would have to be told again.
        for days in [3_000, 10_000, -20_000] as [Int64] {
            clock.advance(seconds: days * 86_400)
            _ = try self.house()
            #expect(try !house.renew())
        }
        #expect(try lasting.map(text) == before)
    }

    @Test func `an authority that was made by a wrong clock is good by the right one`() throws {
        clock.advance(seconds: -clock.now / 1_000)
        let house = try house()
        #expect(try !house.renew())
        clock.advance(seconds: 1_800_000_000)
        #expect(try house.renew())
        for name in ["authority.crt", "issuer.crt"] {
            let certificate = try Certificate(pemEncoded: text(name))
            let now = Date(timeIntervalSince1970: 1_800_000_000)
            #expect((certificate.notValidBefore...certificate.notValidAfter).contains(now))
        }
    }

    @Test func `a server's certificate that is missing or damaged is made anew, and no key is`()
        throws
    {
        let house = try house()
        let pin = try pin()
        try damage("server.crt")
        #expect(try house.renew())
        try remove("server.crt")
        #expect(try house.renew())
        #expect(try self.pin() == pin)
        try damage("server.key")
        #expect {
            try house.renew()
        } throws: { "\($0)".contains("server.key") && "\($0)".contains("restore it") }
    }

    @Test(arguments: ["authority.crt", "issuer.crt", "issuer.key"])
    func `what browsers trust is made anew by nobody but the operator`(name: String) throws {
        let house = try house()
        let old = try (pin: pin(), authority: text("authority.crt"), issuer: text("issuer.key"))
        try damage(name)
        #expect {
            _ = try self.house()
        } throws: { "\($0)".contains(name) && "\($0)".contains("remove authority.crt") }
        if name != "authority.crt" {
            try remove(name)
            for again in [{ try house.renew() }, { try self.house().renew() }] {
                #expect {
                    _ = try again()
                } throws: { "\($0)".contains(name) && "\($0)".contains("remove authority.crt") }
            }
        }
        try remove("authority.crt")
        let next = try self.house()
        #expect(try text("authority.crt") != old.authority && text("issuer.key") != old.issuer)
        #expect(try pin() == old.pin)
        #expect(try !next.renew())
        #expect(try text("server.crt").hasSuffix(text("issuer.crt")))
        // A copy of the other one, beside it.
        try old.authority.write(
            toFile: folder.file("house/authority.crt"), atomically: true, encoding: .utf8)
        #expect {
            _ = try self.house()
        } throws: { "\($0)".contains("issuer.crt") }
    }

    @Test func `the authority vouches for names that were given when it was made`() throws {
        #expect(try house(["u.example", "pi.home.arpa"]).namesLeftOut() == [])
        #expect(try house(["u.example", "other.example"]).namesLeftOut() == ["other.example"])
        #expect(try house().namesLeftOut() == [])
        #expect(try house(["u.example", "pi"]).namesLeftOut() == ["pi"])
    }

    @Test func `the authority vouches for a public address that was given, and says of others`()
        throws
    {
        addresses.texts.withLock { $0 = ["203.0.113.5"] }
        #expect(try house().namesLeftOut() == ["203.0.113.5"])
        #expect(try house(["203.0.113.5"]).namesLeftOut() == ["203.0.113.5"])
        try remove("authority.crt")
        let house = try house(["203.0.113.5"])
        #expect(house.namesLeftOut() == [])
        let chain = try PEMDocument.parseMultiple(pemString: text("server.crt"))
        let certificate = try Certificate(pemDocument: chain[0])
        let names = try certificate.extensions.subjectAlternativeNames ?? SubjectAlternativeNames()
        #expect(names.contains(.ipAddress(ASN1OctetString(contentBytes: [203, 0, 113, 5]))))
        #expect(try self.house(["203.0.113.6"]).namesLeftOut() == ["203.0.113.6"])
        #expect(try !house.renew())
    }

    // MARK: The server

    @Test func `browsers that trust the authority trust the server, under all of its names`()
        async throws
    {
        let server = try await RunningServer.start(in: folder) { configure(&$0) }
        let authority = try await server.send("GET", "/ca.crt")
        #expect(authority.headers["content-type"] == "application/x-x509-ca-cert")
        let house = try await server.send("GET", "/v1/config").message(WireConfig.self).house
        #expect(house.authority == authority.text && authority.text.contains("BEGIN CERTIFICATE"))
        #expect(Fingerprint.sha256(ofPEM: authority.text)?.count == 95)
        for (host, trusted, isTrusted) in [
            ("localhost", authority.text, true), ("127.0.0.1", authority.text, true),
            ("127.0.0.2", authority.text, false), ("localhost", TestIdentity.authority, false),
        ] {
            var request = HTTPRequest("GET", "https://\(host):\(server.port)/v1/config")
            request.certificates = trusted
            let answer = try? await TestAnswer.to(request)
            #expect(answer?.status == (isTrusted ? 200 : nil), "\(host)")
            // Other servers under the house's names may have no TLS.
            #expect(answer?.headers["strict-transport-security"] == nil)
        }
        try await server.stop()
    }

    @Test func `codes have the server's key and an address that other machines can use`()
        async throws
    {
        let log = LogRecorder()
        var port = 0
        for given in [0, nil] as [Int?] {
            let server = try await RunningServer.start(in: folder, log: log) {
                configure(&$0)
                $0.hostNames = []
                $0.port = given ?? port
            }
            port = server.port
            if given == nil {
                let data = folder.file("data")
                let pin = try TLSIdentity(
                    ServerTLS(
                        certificatePath: data + "/house/server.crt",
                        keyPath: data + "/house/server.key", hasLastingKey: true)
                ).pin
                let link = "https://192.168.1.20:\(port)/#"
                #expect(log.text.contains(link))
                #expect(log.text.contains(";" + (try #require(pin))))
                let device = try await server.newDevice()
                let made = try await server.send(
                    "POST", "/v1/codes", body: Array("{}".utf8),
                    headers: [
                        "Authorization": "Bearer \(device.credential)",
                        "Content-Type": "application/json",
                    ])
                let answer = try made.message(WireNewAccountAnswer.self)
                #expect(answer.server == "https://192.168.1.20:\(port)" && answer.pin == pin)
            }
            try await server.stop()
        }
    }

    @Test func `that the authority ends is in the log before it does`() async throws {
        let sentence = "The house's authority ends"
        for (days, isNear) in [(0, false), (20 * 365 - 91, false), (2, true), (90, true)] {
            clock.advance(seconds: Int64(days) * 86_400)
            let log = LogRecorder()
            try await RunningServer.start(in: folder, log: log) { configure(&$0) }.stop()
            #expect(log.text.contains(sentence) == isNear, "\(days)")
        }
    }

    @Test func `it answers to any address of its own machine, and to no foreign name`() async throws
    {
        let server = try await RunningServer.start(in: folder) { configure(&$0) }
        for (host, status) in [("192.168.1.20:7717", 200), ("a", 200), ("evil.example", 421)] {
            let connection = try await RawConnection.open(server.port)
            await connection.send(Self.config.replacing("localhost", with: host))
            #expect(try await connection.end().hasPrefix("HTTP/1.1 \(status) "), "\(host)")
        }
        try await server.stop()
    }
}
