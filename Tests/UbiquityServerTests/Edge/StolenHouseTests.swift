// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Crypto
internal import Foundation
internal import SwiftASN1
internal import Testing
internal import UbiquityHTTP
internal import X509

@testable internal import UbiquityServer

/// Somebody who has stolen all keys of a server of a local network, and a browser that trusts its
/// authority.
struct StolenHouseTests {
    private let folder: TemporaryFolder
    private let thief: Thief
    private let root: Certificate

    init() throws {
        let folder = try TemporaryFolder()
        var settings = ServerSettings(dataFolder: folder.path)
        settings.hostNames = ["u.example", "198.51.100.7"]
        _ = try HouseIdentity(settings)
        func text(_ name: String) throws -> String {
            try String(contentsOfFile: folder.file("house/\(name)"), encoding: .utf8)
        }
        self.folder = folder
        thief = Thief(
            issuer: try Certificate(pemEncoded: text("issuer.crt")),
            issuerKey: try P256.Signing.PrivateKey(pemRepresentation: text("issuer.key")))
        root = try Certificate(pemEncoded: text("authority.crt"))
    }

    /// Whether a client that trusts a root alone speaks with a server that presents a chain.
    private func isTrusted(_ chain: [Certificate], by root: Certificate) async throws -> Bool {
        let (certificate, key) = (folder.file("forged.crt"), folder.file("forged.key"))
        let text = try chain.map { try $0.serializeAsPEM().pemString + "\n" }.joined()
        try text.write(toFile: certificate, atomically: true, encoding: .utf8)
        try thief.key.pemRepresentation.write(toFile: key, atomically: true, encoding: .utf8)
        for path in [certificate, key] { chmod(path, 0o600) }
        let server = try await RunningServer.start {
            $0.tls = ServerTLS(certificatePath: certificate, keyPath: key)
        }
        var request = HTTPRequest("GET", "https://localhost:\(server.port)/v1/config")
        request.certificates = try root.serializeAsPEM().pemString
        let answer = try? await TestAnswer.to(request)
        try await server.stop()
        return answer?.status == 200
    }

    @Test(arguments: [false, true])
    func `stolen keys vouch for nothing else, also where a root's constraints are not heeded`(
        isWithoutRoot: Bool
    ) async throws {
        var (root, issuer) = (root, thief.issuer)
        if isWithoutRoot { (root, issuer) = try thief.withoutRoot() }
        let own = GeneralName.dnsName("localhost")
        func address(_ bytes: [UInt8]) -> GeneralName {
            .ipAddress(ASN1OctetString(contentBytes: bytes[...]))
        }
        for (names, expected) in [
            ([own], true), ([own, .dnsName("pi.local"), .dnsName("www.u.example")], true),
            ([own, address([192, 168, 1, 2]), address([198, 51, 100, 7])], true),
            ([own, .dnsName("bank.example")], false), ([own, address([198, 51, 100, 8])], false),
            ([own, .dnsName("bank.notlocal")], false), ([own, .dnsName("*.example")], false),
            ([own, address([9, 9, 9, 9])], false),
            ([own, address([0x20, 1, 0xd, 0xb8] + Array(repeating: 0, count: 12))], false),
        ] {
            let chain = try [thief.certificate(names), issuer]
            #expect(try await isTrusted(chain, by: root) == expected, "\(names)")
        }
        // Nor is there any authority below it.
        let first = try thief.certificate([own], isAuthority: true)
        let chain = [try thief.second([own], by: first), first, issuer]
        #expect(try await !isTrusted(chain, by: root))
    }
}

/// What whoever has stolen all keys of a house can make with them.
private struct Thief {
    let issuer: Certificate
    let issuerKey: P256.Signing.PrivateKey
    let key = P256.Signing.PrivateKey()

    /// Of a server, or of an authority below.
    func certificate(_ names: [GeneralName], isAuthority: Bool = false) throws -> Certificate {
        try certificate(
            of: key, named: "thief", by: issuer.subject, with: issuerKey,
            Certificate.Extensions {
                Critical(
                    isAuthority
                        ? BasicConstraints.isCertificateAuthority(maxPathLength: nil)
                        : BasicConstraints.notCertificateAuthority)
                SubjectAlternativeNames(names)
            })
    }

    /// By the certificate of an authority below.
    func second(_ names: [GeneralName], by first: Certificate) throws -> Certificate {
        try certificate(
            of: key, named: "second", by: first.subject, with: key,
            Certificate.Extensions { SubjectAlternativeNames(names) })
    }

    /// As systems see it that heed no constraints of a root: another one, which has none.
    func withoutRoot() throws -> (root: Certificate, issuer: Certificate) {
        let key = P256.Signing.PrivateKey()
        let name = try DistinguishedName { CommonName("root") }
        let root = try certificate(
            of: key, named: "root", by: name, with: key,
            Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
            })
        var extensions = issuer.extensions
        extensions.remove(.X509ExtensionID.authorityKeyIdentifier)
        let copy = try Certificate(
            version: .v3, serialNumber: issuer.serialNumber, publicKey: issuer.publicKey,
            notValidBefore: issuer.notValidBefore, notValidAfter: issuer.notValidAfter,
            issuer: name, subject: issuer.subject, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: extensions, issuerPrivateKey: Certificate.PrivateKey(key))
        return (root, copy)
    }

    private func certificate(
        of key: P256.Signing.PrivateKey, named name: String, by issuer: DistinguishedName,
        with issuerKey: P256.Signing.PrivateKey, _ extensions: Certificate.Extensions
    ) throws -> Certificate {
        let now = Date()
        return try Certificate(
            version: .v3, serialNumber: Certificate.SerialNumber(),
            publicKey: Certificate.PublicKey(key.publicKey), notValidBefore: now - 3_600,
            notValidAfter: now + 86_400, issuer: issuer,
            subject: try DistinguishedName { CommonName(name) },
            signatureAlgorithm: .ecdsaWithSHA256, extensions: extensions,
            issuerPrivateKey: Certificate.PrivateKey(issuerKey))
    }
}
