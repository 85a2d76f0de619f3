// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import Foundation
internal import SwiftASN1
internal import UbiquityCore
internal import X509

/// The identity that a server of a local network makes for itself, in a folder of the data folder: a
/// key with a certificate, and an authority of the house that vouches for it.
///
/// The server's key stays, because links have its pin. Its certificate is made anew as
/// ``CertificateRenewal`` says. The authority is a root, which browsers trust, and an issuer, which
/// signs the server's certificates. The root's key is gone once it has signed the issuer's certificate:
/// some systems heed no constraints of a root, and all heed those of an issuer. So neither of the two is
/// ever made anew by itself, whatever a clock says. State: the files alone.
struct HouseIdentity: Sendable {
    private let folder: String
    private let settings: ServerSettings

    private static let day: Int64 = 86_400
    /// No longer than browsers accept.
    private static let serverDays: Int64 = 397
    private static let authorityDays: Int64 = 20 * 365
    /// 2025-01-01, so that an authority is good that was made by a slow clock.
    private static let authorityBegin: Int64 = 1_735_689_600

    /// Makes what is missing.
    /// - Throws: ``ServerStartError``.
    init(_ settings: ServerSettings) throws(ServerStartError) {
        folder = DataFolder(path: settings.dataFolder).housePath
        self.settings = settings
        if let code = DataFolder.makeFolder(folder) {
            throw .folderUnusable(path: folder, reason: DataFolder.systemReason(code))
        }
        if let root = try certificate(Self.authorityName) {
            guard try certificate(Self.issuerName)?.issuer == root.subject else {
                throw unusable(Self.issuerName, "authority.crt has not signed it")
            }
        } else {
            try makeAuthority()
        }
        try renew()
    }

    /// For the server's connections.
    var tls: ServerTLS {
        ServerTLS(
            certificatePath: path(Self.serverName), keyPath: path(Self.keyName), hasLastingKey: true
        )
    }

    /// The certificate of the root, in PEM.
    func authority() throws(ServerStartError) -> [UInt8] {
        guard let bytes = try PrivateFile.readPublic(path(Self.authorityName)) else {
            throw unusable(Self.authorityName, "there is no such file")
        }
        return bytes
    }

    /// The seconds since 1970 at which the authority ends; nil if that is not known.
    var authorityEnd: Int64? {
        let issuer = try? certificate(Self.issuerName)
        return issuer.map { Int64($0.notValidAfter.timeIntervalSince1970) }
    }

    /// Makes the server's certificate anew if it has to be. Connections use it when they read the files
    /// again.
    /// - Returns: Whether it was.
    @discardableResult
    func renew() throws(ServerStartError) -> Bool {
        guard let issuerKey = try key(Self.issuerKeyName) else {
            throw unusable(Self.issuerKeyName, "there is no such file")
        }
        guard let issuer = try certificate(Self.issuerName),
            issuer.publicKey == Certificate.PublicKey(issuerKey.publicKey)
        else { throw unusable(Self.issuerName, "it is not the certificate of issuer.key") }
        let old = try key(Self.keyName)
        let key = if let old { old } else { try makeKey(Self.keyName) }
        let (names, now) = (names(permittedBy: issuer), settings.clock.now() / 1_000)
        let isDue = (try? certificate(Self.serverName)).map {
            $0.issuer != issuer.subject || $0.isDue(wanted: Set(names), now: now, key: key)
        }
        guard isDue ?? true else { return false }
        try write(Self.serverName, followedBy: issuer) {
            try Certificate(
                of: key, names: names, signedBy: issuer, with: issuerKey,
                valid: now - Self.day..<now + Self.serverDays * Self.day)
        }
        return true
    }

    /// The root is written last: without it, all of this is done again.
    private func makeAuthority() throws(ServerStartError) {
        let now = settings.clock.now() / 1_000
        let end = max(now, Self.authorityBegin) + Self.authorityDays * Self.day
        let valid = Self.authorityBegin..<end
        let constraints = NameConstraints(
            permittedDNSDomains: HouseConstraints.domains + publicDomains,
            permittedIPRanges: (HouseConstraints.ranges + publicRanges).map {
                ASN1OctetString(contentBytes: $0.bytesAndMask[...])
            })
        let rootKey = P256.Signing.PrivateKey()
        let root = try made(Self.authorityName) {
            try Certificate(root: rootKey, constraints, valid: valid)
        }
        let issuerKey = try makeKey(Self.issuerKeyName)
        try write(Self.issuerName) {
            try Certificate(
                issuer: issuerKey, constraints, signedBy: root, with: rootKey, valid: valid)
        }
        try write(Self.authorityName) { root }
    }

    // MARK: - Names

    /// The names and addresses that the operator gave the server.
    private var given: [String] {
        (settings.hostNames + [settings.host]).map { name in
            IPAddress(name)?.description ?? name.lowercased()
        }.filter { !(IPAddress($0)?.isUnspecified ?? false) }
    }

    /// Of these, what the Internet may have.
    private var publicNames: [String] {
        given.filter { name in
            IPAddress(name).map { !HouseConstraints.permits($0) }
                ?? (name.contains(".")
                    && !HouseConstraints.permits(name, domains: HouseConstraints.domains))
        }
    }

    private var publicDomains: [String] { publicNames.filter { IPAddress($0) == nil } }

    private var publicRanges: [AddressRange] {
        publicNames.filter { IPAddress($0) != nil }.compactMap(AddressRange.init)
    }

    /// The names and addresses of the server that the authority may vouch for.
    private func names(permittedBy issuer: Certificate) -> [String] {
        let all =
            given + settings.machineNames + ["localhost", "127.0.0.1"]
            + settings.network().addresses.map(\.address.description)
        var known: Set<String> = []
        return all.filter { issuer.permits($0) && known.insert($0).inserted }
    }

    /// The names and addresses that people use, and that the authority was not made for.
    func namesLeftOut() -> [String] {
        guard let issuer = try? certificate(Self.issuerName) else { return [] }
        let first = settings.network().first?.address.description
        let names = given.isEmpty ? [first].compactMap(\.self) : given
        return names.filter { !issuer.permits($0) }
    }

    // MARK: - Files

    private static let authorityName = "authority.crt"
    private static let issuerName = "issuer.crt"
    private static let issuerKeyName = "issuer.key"
    private static let serverName = "server.crt"
    private static let keyName = "server.key"

    private func path(_ name: String) -> String {
        (folder as NSString).appendingPathComponent(name)
    }

    /// - Parameter name: Of a file of the authority.
    private func unusable(_ name: String, _ reason: String) -> ServerStartError {
        .fileUnusable(
            path: path(name),
            reason: """
                \(reason); restore the folder from a copy, or remove authority.crt: the server makes \
                another authority, and browsers must be told to trust that
                """)
    }

    private func makeKey(_ name: String) throws(ServerStartError) -> P256.Signing.PrivateKey {
        let key = P256.Signing.PrivateKey()
        try write(name, key.pemRepresentation + "\n")
        return key
    }

    /// Nil if there is no such file.
    private func key(_ name: String) throws(ServerStartError) -> P256.Signing.PrivateKey? {
        guard let bytes = try PrivateFile.read(path(name)) else { return nil }
        do {
            return try P256.Signing.PrivateKey(
                pemRepresentation: String(decoding: bytes, as: UTF8.self))
        } catch {
            guard name != Self.issuerKeyName else { throw unusable(name, "it has no private key") }
            throw .fileUnusable(
                path: path(name),
                reason: """
                    it has no private key; restore it from a copy, or remove it: the server makes \
                    another, and devices have to sign in anew
                    """)
        }
    }

    /// The first certificate in a file; nil if there is no such file.
    private func certificate(_ name: String) throws(ServerStartError) -> Certificate? {
        guard let bytes = try PrivateFile.readPublic(path(name)) else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        guard let first = (try? PEMDocument.parseMultiple(pemString: text))?.first,
            let certificate = try? Certificate(pemDocument: first)
        else { throw unusable(name, "it has no certificate") }
        return certificate
    }

    private func made<Result>(
        _ name: String, _ make: () throws -> Result
    ) throws(ServerStartError) -> Result {
        do { return try make() } catch { throw .fileUnusable(path: path(name), reason: "\(error)") }
    }

    private func write(
        _ name: String, followedBy issuer: Certificate? = nil, _ make: () throws -> Certificate
    ) throws(ServerStartError) {
        let text = try made(name) {
            try ([make()] + [issuer].compactMap(\.self))
                .map { try $0.serializeAsPEM().pemString + "\n" }.joined()
        }
        try write(name, text)
    }

    private func write(_ name: String, _ text: String) throws(ServerStartError) {
        do throws(AtomicFileError) {
            let file = try AtomicFile(path: path(name), replaces: true)
            try file.write(Array(text.utf8))
            try file.finish()
        } catch { throw .fileUnusable(path: path(name), reason: error.description) }
    }
}

extension ServerSettings {
    /// The names that machines of the local network have for this one.
    var machineNames: [String] {
        let name = SystemFigures.machineName.flatMap { HouseConstraints.localName(ofMachine: $0) }
        return [name].compactMap(\.self)
    }
}
