// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import Foundation
internal import SwiftASN1
internal import UbiquityCore
internal import X509

/// The certificates of a ``HouseIdentity``.
extension Certificate {
    /// A root's own certificate.
    init(
        root key: P256.Signing.PrivateKey, _ constraints: NameConstraints, valid: Range<Int64>
    ) throws {
        let publicKey = PublicKey(key.publicKey)
        let name = try DistinguishedName {
            CommonName("Ubiquity of this house (\(Self.shortName(of: key)))")
        }
        try self.init(
            publicKey: publicKey, valid: valid, issuer: name, subject: name,
            extensions: try Self.authorityExtensions(
                of: publicKey, by: publicKey, pathLength: 1, constraints), key: key)
    }

    /// The certificate of the only authority below a root, which has none below it, for servers alone.
    init(
        issuer key: P256.Signing.PrivateKey, _ constraints: NameConstraints,
        signedBy root: Certificate, with rootKey: P256.Signing.PrivateKey, valid: Range<Int64>
    ) throws {
        let publicKey = PublicKey(key.publicKey)
        var extensions = try Self.authorityExtensions(
            of: publicKey, by: root.publicKey, pathLength: 0, constraints)
        try extensions.append(
            Certificate.Extension(ExtendedKeyUsage([.serverAuth]), critical: false))
        try self.init(
            publicKey: publicKey, valid: valid, issuer: root.subject,
            subject: try DistinguishedName {
                CommonName("Ubiquity's issuer of this house (\(Self.shortName(of: key)))")
            }, extensions: extensions, key: rootKey)
    }

    private static func authorityExtensions(
        of key: PublicKey, by issuer: PublicKey, pathLength: Int, _ constraints: NameConstraints
    ) throws -> Extensions {
        try Extensions {
            Critical(BasicConstraints.isCertificateAuthority(maxPathLength: pathLength))
            Critical(KeyUsage(keyCertSign: true, cRLSign: true))
            Critical(constraints)
            SubjectKeyIdentifier(hash: key)
            AuthorityKeyIdentifier(keyIdentifier: SubjectKeyIdentifier(hash: issuer).keyIdentifier)
        }
    }

    /// A server's certificate.
    /// - Parameter names: Names and addresses.
    init(
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
    func isDue(wanted: Set<String>, now: Int64, key: P256.Signing.PrivateKey) -> Bool {
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

    /// Whether an issuer of a house may vouch for a name or an address.
    func permits(_ name: String) -> Bool {
        guard let constraints = try? extensions.nameConstraints else { return false }
        guard let address = IPAddress(name) else {
            return HouseConstraints.permits(name, domains: Array(constraints.permittedDNSDomains))
        }
        let own = AddressRange(address.description)?.bytesAndMask
        return HouseConstraints.permits(address)
            || constraints.permittedIPRanges.contains { Array($0.bytes) == own }
    }
}
