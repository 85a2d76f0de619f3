// SPDX-License-Identifier: Apache-2.0

#if os(Linux)
import ClientTestSupport
import Foundation
import Testing
import UbiquityHTTP

/// Which servers are trusted, and what is said of the others.
@Suite struct HTTPTrustTests {
    private let client = CurlClient.shared
    /// Of ``TestIdentity/local``.
    private static let pin = "sha256//Q+McXMwPS22sZo/Er7hrE66k4o+oQ97Oud6bLXrcL3g="

    @Test(arguments: [
        (TestIdentity.local, TestIdentity.authority), (.own, TestIdentity.own.certificate),
        (.local, TestIdentity.own.certificate + "\n" + TestIdentity.authority),
        (.local, TestIdentity.local.certificate),
    ])
    func `a server whose certificate, or its issuer's, was given is trusted`(
        identity: TestIdentity, trusted: String
    ) async throws {
        let server = try await TLSServer(identity)
        for host in ["127.0.0.1", "localhost"] {
            let request = HTTPRequest("GET", "https://\(host):\(server.port)").with {
                $0.certificates = trusted
            }
            let outcome = try await request.sent(by: client)
            #expect(outcome.isComplete, "\(outcome.errors)")
            #expect(outcome.text == "\(host):\(server.port)")
        }
    }

    @Test(arguments: [
        (TestIdentity.local, nil, HTTPFailure.CertificateProblem.untrusted),
        (.local, TestIdentity.own.certificate, .untrusted),
        (.elsewhere, TestIdentity.authority, .otherName),
        (.expired, TestIdentity.authority, .expired(1_609_459_200)),
        (.expired, TestIdentity.own.certificate, .expired(1_609_459_200)),
        (.future, TestIdentity.future.certificate, .notYetValid(4_102_444_800)),
        (.local, "", .nothingToTrust), (.local, "no certificate", .nothingToTrust),
        (
            .local, "-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----",
            .nothingToTrust
        ),
    ])
    func `a certificate is refused, and the reason is told`(
        identity: TestIdentity, trusted: String?, problem: HTTPFailure.CertificateProblem
    ) async throws {
        let server = try await TLSServer(identity)
        let request = HTTPRequest("GET", server.url).with { $0.certificates = trusted }
        #expect(try await request.sent(by: client).failure == .certificate(problem))
    }

    @Test func `a connection is used only by those who trust the same`() async throws {
        let server = try await TLSServer(.local)
        let request = HTTPRequest("GET", server.url).with {
            $0.certificates = TestIdentity.authority
        }
        #expect(try await request.sent(by: client).isComplete)
        let others = [
            request.with { $0.certificates = nil },
            request.with { $0.certificates = TestIdentity.own.certificate },
        ]
        for other in others {
            #expect(try await other.sent(by: client).failure == .certificate(.untrusted))
        }
        let pinned = request.with { $0.pin = "sha256//" + String(repeating: "A", count: 43) + "=" }
        #expect(try await pinned.sent(by: client).failure == .certificate(.otherKey))
    }

    @Test func `a pinned key is checked, beside the certificates that were given`() async throws {
        let server = try await TLSServer(.local)
        var request = HTTPRequest("GET", server.url)
        (request.certificates, request.pin) = (TestIdentity.authority, Self.pin)
        #expect(try await request.sent(by: client).isComplete)
        let untrusted = request.with { $0.certificates = TestIdentity.own.certificate }
        #expect(try await untrusted.sent(by: client).failure == .certificate(.untrusted))
        let alone = request.with { $0.certificates = nil }
        for pin in [TestIdentity.ownPin, "/etc/passwd", ""] {
            for request in [request, alone] {
                let other = request.with { $0.pin = pin }
                #expect(try await other.sent(by: client).failure == .certificate(.otherKey))
            }
        }
    }

    @Test(arguments: [
        (TestIdentity.own, TestIdentity.ownPin), (.local, pin),
        // For another name, of the past, of the future.
        (.elsewhere, "sha256//OX1Oe4BdWhao3P3Ua0K+KhtPR0A9y58FZL7hFg2Rw3Q="),
        (.expired, "sha256//B5rylOZLHVEH9mR6vPSqKSdRIOIMS8UzPQ6fDpmvo+U="),
        (.future, "sha256//sP1h2NbEioWF5ZWNgxcCzbUkOPrVSJZsmMkhE8+5yGA="),
    ])
    func `a pinned key is enough alone, whatever the certificate says`(
        identity: TestIdentity, pin: String
    ) async throws {
        let server = try await TLSServer(identity)
        let request = HTTPRequest("GET", server.url).with { $0.pin = pin }
        #expect(try await request.sent(by: client).isComplete)
        // On no connection of others who trust less.
        let unpinned = request.with { $0.pin = nil }
        guard case .certificate = try await unpinned.sent(by: client).failure else {
            Issue.record("trusted without its key")
            return
        }
    }

    @Test func `a key is not pinned in vain`() async throws {
        let server = try RawServer { connection in
            while connection.request() != nil { connection.answer() }
        }
        let request = HTTPRequest("GET", server.url).with { $0.pin = Self.pin }
        #expect(try await request.sent(by: client).failure == .noTLS)
        #expect(server.accepted == 0)
    }

    @Test func `a server that does not use TLS is told apart`() async throws {
        let stub = try await StubServer { _ in .init() }
        let https = stub.address.replacing("http:", with: "https:")
        #expect(try await HTTPRequest("GET", https).sent(by: client).failure == .noTLS)
        let mail = try RawServer { connection in
            connection.write("220 mail.example ESMTP\r\n")
            connection.drain()
        }
        let request = HTTPRequest("GET", "https://127.0.0.1:\(mail.port)")
        #expect(try await request.sent(by: client).failure == .noTLS)
    }

    @Test func `a server that closes in place of its certificate has closed`() async throws {
        let server = try RawServer { _ = $0.read(1_000) }
        let request = HTTPRequest("GET", "https://127.0.0.1:\(server.port)")
        #expect(try await request.sent(by: client).failure == .closed)
    }

    @Test func `SSL_CERT_FILE names what the system trusts, and only it`() async throws {
        let folder = try TemporaryFolder()
        try Data(TestIdentity.authority.utf8).write(
            to: URL(fileURLWithPath: folder.file("roots.pem")))
        let client = CurlClient(environment: ["SSL_CERT_FILE": folder.file("roots.pem")])
        let server = try await TLSServer(.local)
        let request = HTTPRequest("GET", server.url)
        #expect(try await request.sent(by: client).isComplete)
        let other = request.with { $0.certificates = TestIdentity.own.certificate }
        #expect(try await other.sent(by: client).failure == .certificate(.untrusted))
        let absent = CurlClient(environment: ["SSL_CERT_FILE": folder.file("absent")])
        guard case .other = try await request.sent(by: absent).failure else {
            Issue.record("no file, but trust")
            return
        }
    }
}

extension TestIdentity {
    /// For this machine, from the year 2100 on, and signed by itself.
    fileprivate static let future = TestIdentity(
        certificate: """
            -----BEGIN CERTIFICATE-----
            MIIBYDCCAQagAwIBAgIBATAKBggqhkjOPQQDAjARMQ8wDQYDVQQDDAZmdXR1cmUw
            IhgPMjEwMDAxMDEwMDAwMDBaGA8yMTI2MDEwMTAwMDAwMFowETEPMA0GA1UEAwwG
            ZnV0dXJlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEF6GqYi0XGmsxTMQ10JCd
            MkwXIs89twiYWwMS5VTXBH00Nl2o9COw+SVzHqZp27MjSvrjQHGtuexPQcZ7Xa/u
            qqNLMEkwGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMAwGA1UdEwEB/wQCMAAw
            HQYDVR0OBBYEFIuqMZWghIbf1nE6M8ZuFR9zlFRoMAoGCCqGSM49BAMCA0gAMEUC
            IGXvH7Dn+qIHlUELtgrbBPiBSH96PtPH8uSsTFfnwNdWAiEA4pA1VN0gRwddMzDd
            9TdkTJEDlVtDvbXmRGL1LECxI1M=
            -----END CERTIFICATE-----
            """,
        key: """
            -----BEGIN PRIVATE KEY-----
            MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgLfF4SSToabozNrFo
            kUs1Wsnescdxa5C9NMsz67rjyeShRANCAAQXoapiLRcaazFMxDXQkJ0yTBcizz23
            CJhbAxLlVNcEfTQ2Xaj0I7D5JXMepmnbsyNK+uNAca257E9Bxntdr+6q
            -----END PRIVATE KEY-----
            """)
}
#endif
