// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Logging
internal import Testing
internal import UbiquityCore
internal import UbiquityServer
internal import UbiquityWire

@Suite(.serialized) struct TLSTests {
    private static let config = "GET /v1/config HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

    /// A server with an identity in files of its own.
    private func withTLS(
        _ configure: (inout ServerSettings) -> Void = { _ in },
        _ body: (RunningServer, _ certificate: String, _ key: String) async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder()
        let (certificate, key) = (folder.file("certificate"), folder.file("key"))
        try TestIdentity.local.write(certificate: certificate, key: key)
        let server = try await RunningServer.start(in: folder) {
            $0.tls = ServerTLS(certificatePath: certificate, keyPath: key)
            $0.metricsPort = 0
            configure(&$0)
        }
        do { try await body(server, certificate, key) } catch {
            try? await server.stop()
            throw error
        }
        try await server.stop()
    }

    private func ask(
        _ server: RunningServer, trusting authority: String = TestIdentity.authority
    ) async throws -> String {
        let connection = try await RawConnection.open(server.port, authority: authority)
        await connection.send(Self.config)
        return try await connection.end()
    }

    @Test func `requests are answered under TLS, and browsers told to stay with it`() async throws {
        try await withTLS { server, _, _ in
            let answer = try await ask(server)
            #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(answer.contains("Strict-Transport-Security: max-age=31536000\r\n"))
        }
    }

    /// The key of a certificate that an authority has signed may change, and that of a proxy is another.
    @Test(arguments: [
        (TestIdentity.local, nil, ""), (.own, "127.0.0.1", ""), (.own, nil, TestIdentity.ownPin),
    ])
    func `codes come with the key of a certificate that is signed by itself`(
        identity: TestIdentity, proxy: String?, pin: String
    ) async throws {
        try await withTLS({
            try? identity.write(certificate: $0.tls!.certificatePath, key: $0.tls!.keyPath)
            $0.trustedProxies = proxy.map { [AddressRange($0)!] } ?? []
        }) { server, _, _ in
            let socket = try await FolderSocket.ofServer(on: server.folder.file("data"))
            var account = WireNewAccount()
            account.name = "ada"
            let made = try await RunningServer.send(to: socket, "POST", "/v1/accounts", account)
            #expect(try made.message(WireNewAccountAnswer.self).pin == pin)
        }
    }

    @Test(arguments: [
        ("ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256", true),
        ("ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305", true),
        ("ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA", false),
        ("AES128-GCM-SHA256:AES256-GCM-SHA384", false), ("AES128-SHA:AES256-SHA", false),
    ])
    func `TLS 1.2 is spoken with forward secrecy and authenticated encryption, or not at all`(
        ciphers: String, isSpoken: Bool
    ) async throws {
        try await withTLS { server, _, _ in
            let connection = try await RawConnection.open(
                server.port, authority: TestIdentity.authority, ciphers: ciphers)
            await connection.send(Self.config)
            #expect(try await connection.end().hasPrefix("HTTP/1.1 200 OK") == isSpoken)
        }
    }

    @Test func `plain HTTP on the TLS port is told to use https`() async throws {
        try await withTLS { server, _, _ in
            let connection = try await RawConnection.open(server.port)
            await connection.send(Self.config)
            let answer = try await connection.end()
            #expect(answer.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
            #expect(answer.contains("application/problem+json"))
            #expect(answer.contains("https"))
        }
    }

    @Test func `a handshake that is never finished is given up`() async throws {
        try await withTLS({ $0.constants.headSeconds = 1 }) { server, _, _ in
            let connection = try await RawConnection.open(server.port)
            await connection.send("\u{16}\u{3}\u{1}\u{2}\0")
            #expect(try await connection.end().isEmpty)
            #expect(try await server.count(of: "slow-head") == 1)
            #expect(try await ask(server).hasPrefix("HTTP/1.1 200"))
        }
    }

    @Test func `garbage in place of a handshake is given up at once`() async throws {
        try await withTLS { server, _, _ in
            let connection = try await RawConnection.open(server.port)
            await connection.send("\u{16}\u{3}\u{1}\0\u{4}abcd")
            _ = try await connection.end()
            #expect(try await server.count(of: "tls-handshake") == 1)
        }
    }

    @Test func `a new pair of files serves new connections, and a broken one does not`()
        async throws
    {
        try await withTLS { server, certificate, key in
            #expect(try await ask(server, trusting: TestIdentity.own.certificate).isEmpty)
            let held = try await RawConnection.open(
                server.port, authority: TestIdentity.authority)
            await held.send("GET /v1/config HTTP/1.1\r\nHost: a\r\n\r\n")
            try await held.receive("200 OK")

            try Data("no key".utf8).write(to: URL(fileURLWithPath: key))
            try await until("a look at the broken key") {
                try await server.metrics().contains("ubiquity_certificate_reloads_failed_total 1\n")
            }
            #expect(try await ask(server).hasPrefix("HTTP/1.1 200"))

            try TestIdentity.own.write(certificate: certificate, key: key)
            try await until("the new certificate") {
                try await !ask(server, trusting: TestIdentity.own.certificate).isEmpty
            }
            await held.send(Self.config)
            #expect(try await held.end().components(separatedBy: "200 OK").count == 3)
        }
    }

    @Test func `files that cannot be used keep a server from starting, and say why`()
        async throws
    {
        let folder = try TemporaryFolder()
        let (certificate, key) = (folder.file("certificate"), folder.file("key"))
        func reason() async throws -> String {
            let error = await #expect(throws: ServerStartError.self) {
                try await RunningServer.start(in: folder) {
                    $0.tls = ServerTLS(certificatePath: certificate, keyPath: key)
                }.stop()
            }
            return "\(try #require(error))"
        }
        #expect(try await reason().contains(certificate))
        try TestIdentity.local.write(certificate: certificate, key: key)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key)
        #expect(try await reason().contains("chmod 600 \(key)"))
        try TestIdentity.own.write(certificate: folder.file("other"), key: key)
        #expect(try await reason().contains("it is not the key of the certificate"))
        try Data("nothing".utf8).write(to: URL(fileURLWithPath: certificate))
        #expect(try await reason().contains("no certificate in PEM"))
    }

    /// As Debian's group `ssl-cert` and Kubernetes' `fsGroup` have it.
    @Test(.enabled(if: geteuid() == 0, "Only root can give files to others."))
    func `a key of root's may be readable by a group of the server's, and by no other`()
        async throws
    {
        let folder = try TemporaryFolder()
        let (certificate, key) = (folder.file("certificate"), folder.file("key"))
        try TestIdentity.local.write(certificate: certificate, key: key)
        for (owner, group, mode, isUsed) in [
            (0, getegid(), 0o640, true), (0, getegid(), 0o440, true), (0, getegid(), 0o660, false),
            (0, getegid(), 0o644, false), (0, 65_000, 0o640, false),
            (65_000, getegid(), 0o640, false),
        ] as [(UInt32, UInt32, mode_t, Bool)] {
            #expect(chown(key, owner, group) == 0 && chmod(key, mode) == 0)
            let error = await #expect(throws: (any Error).self) {
                try await RunningServer.start(in: folder) {
                    $0.tls = ServerTLS(certificatePath: certificate, keyPath: key)
                }.stop()
                throw CancellationError()
            }
            #expect(error is CancellationError == isUsed, "\(owner) \(group) \(mode): \(error!)")
        }
    }
}
