// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import Foundation
internal import Logging
internal import SwiftASN1
internal import UbiquityCore
internal import X509

/// What a server of a local network makes for itself, in a folder of the data folder: a key and its
/// certificate, and an authority of the house that signs it.
///
/// The keys stay: links have the pin of the server's, and browsers trust the authority's. The
/// certificates are made anew as ``CertificateRenewal`` says. State: the files alone.
struct HouseIdentity: Sendable {
    private let folder: String
    private let settings: ServerSettings

    private static let day: Int64 = 86_400
    /// No longer than browsers accept.
    private static let serverDays: Int64 = 397
    private static let authorityDays: Int64 = 3_650

    /// Makes what is missing.
    /// - Throws: ``ServerStartError``.
    init(_ settings: ServerSettings) throws(ServerStartError) {
        folder = DataFolder(path: settings.dataFolder).housePath
        self.settings = settings
        if mkdir(folder, 0o700) != 0, errno != EEXIST {
            throw .folderUnusable(path: folder, reason: DataFolder.systemReason())
        }
        try renew()
    }

    /// For the server's connections.
    var tls: ServerTLS {
        ServerTLS(
            certificatePath: path("server.crt"), keyPath: path("server.key"), hasLastingKey: true)
    }

    /// The certificate of the authority, in PEM.
    func authority() throws(ServerStartError) -> [UInt8] {
        guard let bytes = try PrivateFile.read(path("authority.crt")) else {
            throw .fileUnusable(path: path("authority.crt"), reason: "there is no such file")
        }
        return bytes
    }

    /// Makes those certificates anew that have to be.
    /// - Returns: Whether the server's was. Its connections use it when they read the files again.
    @discardableResult
    func renew() throws(ServerStartError) -> Bool {
        let (authorityKey, key) = (try key("authority.key"), try key("server.key"))
        let now = settings.clock.now() / 1_000
        var authority = try certificate("authority.crt")
        let isNew = authority.map { $0.isDue(wanted: [], now: now, key: authorityKey) } ?? true
        if isNew {
            authority = try write("authority.crt") {
                try Certificate(
                    authorityWith: authorityKey, domains: HouseConstraints.domains + publicNames,
                    valid: Self.validity(days: Self.authorityDays, now: now))
            }
        }
        guard let authority else { return false }
        let names = names(permittedBy: authority)
        let isDue = try certificate("server.crt").map {
            $0.isDue(wanted: Set(names), now: now, key: key)
        }
        guard isNew || isDue ?? true else { return false }
        _ = try write("server.crt", followedBy: authority) {
            try Certificate(
                of: key, names: names, signedBy: authority, with: authorityKey,
                valid: Self.validity(days: Self.serverDays, now: now))
        }
        return true
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
    private func names(permittedBy authority: Certificate) -> [String] {
        let given = settings.hostNames + [settings.host] + settings.machineNames + ["localhost"]
        let addresses =
            settings.network().addresses.map(\.address) + given.compactMap { IPAddress($0) }
        let domains = authority.permittedDomains
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
        guard let authority = try? certificate("authority.crt") else { return [] }
        return publicNames.filter {
            !HouseConstraints.permits($0, domains: authority.permittedDomains)
        }
    }

    /// From a day ago, because the clocks of others may be slow.
    private static func validity(days: Int64, now: Int64) -> Range<Int64> {
        now - day..<now + days * day
    }

    // MARK: - Files

    private func path(_ name: String) -> String {
        (folder as NSString).appendingPathComponent(name)
    }

    /// The key in a file, which is made if it is missing.
    private func key(_ name: String) throws(ServerStartError) -> P256.Signing.PrivateKey {
        guard let bytes = try PrivateFile.read(path(name)) else {
            let key = P256.Signing.PrivateKey()
            try write(name, key.pemRepresentation + "\n")
            return key
        }
        do {
            return try P256.Signing.PrivateKey(
                pemRepresentation: String(decoding: bytes, as: UTF8.self))
        } catch {
            throw .fileUnusable(
                path: path(name),
                reason:
                    "it has no private key; restore it from a copy, or remove it: the server makes "
                    + "another, and devices and browsers must be told to trust that")
        }
    }

    /// The first certificate in a file; nil if there is none that can be used.
    private func certificate(_ name: String) throws(ServerStartError) -> Certificate? {
        guard let bytes = try PrivateFile.read(path(name)) else { return nil }
        let documents = try? PEMDocument.parseMultiple(
            pemString: String(decoding: bytes, as: UTF8.self))
        return documents?.first.flatMap { try? Certificate(pemDocument: $0) }
    }

    private func write(
        _ name: String, followedBy issuer: Certificate? = nil, _ make: () throws -> Certificate
    ) throws(ServerStartError) -> Certificate {
        do {
            let certificate = try make()
            let chain = try ([certificate] + [issuer].compactMap(\.self)).map {
                try $0.serializeAsPEM().pemString + "\n"
            }
            try write(name, chain.joined())
            return certificate
        } catch let error as ServerStartError { throw error } catch {
            throw .fileUnusable(path: path(name), reason: "\(error)")
        }
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
    /// An authority's own certificate.
    /// - Parameter domains: The names that it may vouch for, with those below them.
    fileprivate init(
        authorityWith key: P256.Signing.PrivateKey, domains: [String], valid: Range<Int64>
    ) throws {
        let publicKey = PublicKey(key.publicKey)
        let name = try DistinguishedName {
            CommonName("Ubiquity of this house (\(Self.shortName(of: key)))")
        }
        let ranges = HouseConstraints.ranges.map {
            ASN1OctetString(contentBytes: $0.bytesAndMask[...])
        }
        try self.init(
            publicKey: publicKey, valid: valid, issuer: name, subject: name,
            extensions: Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                Critical(KeyUsage(keyCertSign: true, cRLSign: true))
                Critical(NameConstraints(permittedDNSDomains: domains, permittedIPRanges: ranges))
                SubjectKeyIdentifier(hash: publicKey)
            }, key: key)
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

    /// So that the authorities of two houses have two names.
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
