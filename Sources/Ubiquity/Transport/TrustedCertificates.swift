// SPDX-License-Identifier: Apache-2.0

internal import NIOSSL
internal import Synchronization
internal import UbiquityCore

/// The verification of servers: by the system's roots, or by the certificates that a person gave
/// for a single server.
enum TrustedCertificates {
    /// By the text of the certificates. A process has few accounts, so none is ever removed.
    private static let known = Mutex<[String: TLSConfiguration]>([:])

    /// For servers with certificates from the system's roots.
    static var system: TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        return configuration
    }

    /// - Throws: ``LinkFailure`` if the text contains no certificate.
    static func configuration(pem: String) throws(LinkFailure) -> TLSConfiguration {
        if let known = known.withLock({ $0[pem] }) { return known }
        let certificates = try? NIOSSLCertificate.fromPEMBytes(Array(pem.utf8))
        guard let certificates, !certificates.isEmpty else {
            throw LinkFailure(
                .refused,
                "the certificate to trust is none: a file in PEM begins with "
                    + "-----BEGIN CERTIFICATE-----")
        }
        var configuration = system
        configuration.trustRoots = .certificates(certificates)
        known.withLock { $0[pem] = configuration }
        return configuration
    }
}
