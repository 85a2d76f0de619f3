// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import Synchronization
internal import UbiquityCore

/// Finds out why a server's certificate was not accepted, since TLS only says that it was not. Uses
/// a connection of its own that ends after the certificate, before anything is sent.
enum CertificateDiagnosis {
    /// Whether an error is about the server's certificate.
    static func concerns(_ error: any Error) -> Bool {
        switch error {
        case let error as NIOSSLExtraError: error == .failedToValidateHostname
        case NIOSSLError.unableToValidateCertificate, NIOSSLError.noCertificateToValidate: true
        case NIOSSLError.handshakeFailed(let cause):
            "\(cause)".contains("CERTIFICATE_VERIFY_FAILED")
        default: false
        }
    }

    /// Whether the other side does not use TLS.
    static func isNoTLS(_ error: any Error) -> Bool {
        guard case NIOSSLError.handshakeFailed(let cause) = error else { return false }
        return "\(cause)".contains("WRONG_VERSION_NUMBER") || "\(cause)".contains("HTTP_REQUEST")
    }

    /// A sentence about the problem and its solution.
    static func sentence(of error: any Error, _ address: ServerAddress) async -> String {
        if error as? NIOSSLExtraError == .failedToValidateHostname {
            return "the certificate of the server at \(address) is for another name; use the name "
                + "that it was issued for, or ask the server operator for a certificate with this "
                + "name"
        }
        let leaf = await leaf(of: address)
        if let leaf, leaf.notValidAfter < now {
            return "the certificate of the server at \(address) expired on "
                + "\(day(leaf.notValidAfter)); the server operator must renew it"
        }
        if let leaf, leaf.notValidBefore > now {
            return "the certificate of the server at \(address) is not valid before "
                + "\(day(leaf.notValidBefore)); check this device's clock"
        }
        return address.certificates == nil
            ? "the certificate of the server at \(address) is not trusted by this system; if it is "
                + "the server operator's own, get it from them and sign in with it (--certificate "
                + "FILE)"
            : "the certificate of the server at \(address) is not the one that this device was "
                + "told to trust; if the server operator has changed it, sign in again with the "
                + "new one"
    }

    private static var now: Int64 { Int64(Date().timeIntervalSince1970) }

    private static func day(_ seconds: some BinaryInteger) -> String {
        Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601.year().month().day())
    }

    /// Nil if the server sends no certificate.
    private static func leaf(of address: ServerAddress) async -> NIOSSLCertificate? {
        guard let (host, port) = address.endpoint else { return nil }
        let found = Mutex<NIOSSLCertificate?>(nil)
        let connection = try? await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(.seconds(SharedHTTPClient.connectSecondsMax))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let handler = try NIOSSLClientHandler(
                        context: NIOSSLContext(configuration: TrustedCertificates.system),
                        serverHostname: IPAddress(host) == nil ? host : nil,
                        customVerificationCallback: { certificates, promise in
                            found.withLock { $0 = certificates.first }
                            promise.succeed(.failed)
                        })
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
            .connect(host: host, port: port).get()
        guard let connection else { return nil }
        let end = connection.eventLoop.scheduleTask(in: .seconds(5)) {
            connection.close(promise: nil)
        }
        try? await connection.closeFuture.get()
        end.cancel()
        return found.withLock { $0 }
    }
}
