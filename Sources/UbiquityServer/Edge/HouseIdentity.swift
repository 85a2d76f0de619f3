// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import Foundation
internal import Logging
internal import SwiftASN1
internal import UbiquityCore
internal import X509

/// What a server of a local network makes for itself, in a folder of the data folder: a key with a
/// certificate, and an authority of the house that vouches for it.
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
        if mkdir(folder, 0o700) != 0, errno != EEXIST {
            throw .folderUnusable(path: folder, reason: DataFolder.systemReason())
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
        let (valid, domains) = (Self.authorityBegin..<end, HouseConstraints.domains + publicNames)
        let rootKey = P256.Signing.PrivateKey()
        let root = try made(Self.authorityName) {
            try Certificate(root: rootKey, domains: domains, valid: valid)
        }
        let issuerKey = try makeKey(Self.issuerKeyName)
        try write(Self.issuerName) {
            try Certificate(
                issuer: issuerKey, domains: domains, signedBy: root, with: rootKey, valid: valid)
        }
        try write(Self.authorityName) { root }
    }

    // MARK: - Names

    /// The operator's names that the Internet may have.
    private var publicNames: [String] {
        settings.hostNames.map { $0.lowercased() }.filter { name in
            name.contains(".") && IPAddress(name) == nil
                && !HouseConstraints.permits(name, domains: HouseConstraints.domains)
        }
    }

    /// The names and addresses of the server that the authority may vouch for.
    private func names(permittedBy issuer: Certificate) -> [String] {
        let given = settings.hostNames + [settings.host] + settings.machineNames + ["localhost"]
        let addresses =
            settings.network().addresses.map(\.address) + given.compactMap { IPAddress($0) }
        let domains = issuer.permittedDomains
        var names = given.map { $0.lowercased() }.filter { name in
            IPAddress(name) == nil && HouseConstraints.permits(name, domains: domains)
        }
        names += (addresses + ["127.0.0.1"].compactMap { IPAddress($0) })
            .filter { HouseConstraints.permits($0) }.map(\.description)
        var known: Set<String> = []
        return names.filter { known.insert($0).inserted }
    }

    /// The names that the operator gave, and for which the authority was not made.
    func namesLeftOut() -> [String] {
        guard let issuer = try? certificate(Self.issuerName) else { return [] }
        return publicNames.filter {
            !HouseConstraints.permits($0, domains: issuer.permittedDomains)
        }
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

// MARK: - Certificates

extension Certificate {
    /// A root's own certificate.
    /// - Parameter domains: The names that its authority may vouch for, with those below them.
    fileprivate init(
        root key: P256.Signing.PrivateKey, domains: [String], valid: Range<Int64>
    ) throws {
        let publicKey = PublicKey(key.publicKey)
        let name = try DistinguishedName {
            CommonName("Ubiquity of this house (\(Self.shortName(of: key)))")
        }
        try self.init(
            publicKey: publicKey, valid: valid, issuer: name, subject: name,
            extensions: try Self.authorityExtensions(
                of: publicKey, by: publicKey, pathLength: 1, domains: domains), key: key)
    }

    /// The certificate of the only authority below a root, which has none below it, for servers alone.
    fileprivate init(
        issuer key: P256.Signing.PrivateKey, domains: [String], signedBy root: Certificate,
        with rootKey: P256.Signing.PrivateKey, valid: Range<Int64>
    ) throws {
        let publicKey = PublicKey(key.publicKey)
        var extensions = try Self.authorityExtensions(
            of: publicKey, by: root.publicKey, pathLength: 0, domains: domains)
        try extensions.append(
            Certificate.Extension(ExtendedKeyUsage([.serverAuth]), critical: false))
        try self.init(
            publicKey: publicKey, valid: valid, issuer: root.subject,
            subject: try DistinguishedName {
                CommonName("Ubiquity's issuer of this house (\(Self.shortName(of: key)))")
            }, extensions: extensions, key: rootKey)
    }

    private static func authorityExtensions(
        of key: PublicKey, by issuer: PublicKey, pathLength: Int, domains: [String]
    ) throws -> Extensions {
        let ranges = HouseConstraints.ranges.map {
            ASN1OctetString(contentBytes: $0.bytesAndMask[...])
        }
        return try Extensions {
            Critical(BasicConstraints.isCertificateAuthority(maxPathLength: pathLength))
            Critical(KeyUsage(keyCertSign: true, cRLSign: true))
            Critical(NameConstraints(permittedDNSDomains: domains, permittedIPRanges: ranges))
            SubjectKeyIdentifier(hash: key)
            AuthorityKeyIdentifier(keyIdentifier: SubjectKeyIdentifier(hash: issuer).keyIdentifier)
        }
    }

    /// A server's certificate.
    /// - Parameter names: Names and addresses.
    fileprivate init(
        of key: P256.Signing.PrivateKey, names: [String], signedBy issuer: Certificate,
        with issuerKey: P256.Signing.PrivateKey, valid: Range<Int64>
    ) throws {
        let publicKey = PublicKey(key.publicKey)
        let alternatives = names.map { name -> GeneralName in
            IPAddress(name).map { .ipAddress(ASN1OctetString(contentBytes: $0.bytes[...])) }
                ?? .dnsName(name)
        }
        try self.init(
            publicKey: publicKey, valid: valid, issuer: issuer.subject,
            subject: try DistinguishedName { CommonName("Ubiquity") },
            extensions: Extensions {
                Critical(BasicConstraints.notCertificateAuthority)
                Critical(KeyUsage(digitalSignature: true))
                try ExtendedKeyUsage([.serverAuth])
                SubjectAlternativeNames(alternatives)
                SubjectKeyIdentifier(hash: publicKey)
                AuthorityKeyIdentifier(
                    keyIdentifier: SubjectKeyIdentifier(hash: issuer.publicKey).keyIdentifier)
            }, key: issuerKey)
    }

    private init(
        publicKey: PublicKey, valid: Range<Int64>, issuer: DistinguishedName,
        subject: DistinguishedName, extensions: Extensions, key: P256.Signing.PrivateKey
    ) throws {
        func date(_ seconds: Int64) -> Date { Date(timeIntervalSince1970: Double(seconds)) }
        try self.init(
            version: .v3, serialNumber: SerialNumber(), publicKey: publicKey,
            notValidBefore: date(valid.lowerBound), notValidAfter: date(valid.upperBound),
            issuer: issuer, subject: subject, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: extensions, issuerPrivateKey: PrivateKey(key))
    }

    /// So that two authorities have two names.
    private static func shortName(of key: P256.Signing.PrivateKey) -> String {
        SHA256.hash(data: key.publicKey.x963Representation).prefix(3).hexadecimal
    }

    /// Whether it has to be made anew, also for being another key's.
    fileprivate func isDue(wanted: Set<String>, now: Int64, key: P256.Signing.PrivateKey) -> Bool {
        let seconds = [notValidBefore, notValidAfter].map { Int64($0.timeIntervalSince1970) }
        guard publicKey == PublicKey(key.publicKey), seconds[0] < seconds[1] else { return true }
        return CertificateRenewal.isDue(
            valid: seconds[0]..<seconds[1], names: Set(names), wanted: wanted, now: now)
    }

    /// The names and addresses that it is for.
    private var names: [String] {
        let alternatives = try? extensions.subjectAlternativeNames
        return (alternatives ?? SubjectAlternativeNames()).compactMap { alternative in
            switch alternative {
            case .dnsName(let name): name
            case .ipAddress(let octets): IPAddress(bytes: Array(octets.bytes))?.description
            default: nil
            }
        }
    }

    fileprivate var permittedDomains: [String] {
        Array((try? extensions.nameConstraints)?.permittedDNSDomains ?? [])
    }
}

extension ServerSettings {
    /// What the machines of the local network call this one.
    var machineNames: [String] {
        let name = SystemFigures.machineName.flatMap { HouseConstraints.localName(ofMachine: $0) }
        return [name].compactMap(\.self)
    }
}
