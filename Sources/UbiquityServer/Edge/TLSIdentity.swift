// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import Foundation
internal import Logging
internal import NIOSSL
internal import ServiceLifecycle
internal import SwiftASN1
internal import Synchronization
internal import UnixSignals
internal import X509

/// The certificate and key for new connections, reloaded when their files change.
///
/// State: `state`, guarded by its lock. Files are read without holding it.
final class TLSIdentity: Sendable {
    private struct State {
        var loaded: Loaded
        /// The status of the files at the last read, successful or not.
        var seen: [FileStatus?]
        /// The number of times that new files could not be used.
        var failures = 0
    }

    private struct Loaded {
        var context: NIOSSLContext
        /// Seconds since 1970.
        var expires: Int64
        var pin: String?
    }

    private let files: ServerTLS
    private let state: Mutex<State>

    /// - Throws: ``ServerStartError/fileUnusable(path:reason:)``.
    init(_ files: ServerTLS) throws(ServerStartError) {
        self.files = files
        let seen = Self.look(at: files)
        state = Mutex(State(loaded: try Self.load(files), seen: seen))
    }

    var context: NIOSSLContext { state.withLock(\.loaded.context) }
    /// The number of times that new files could not be used.
    var failures: Int { state.withLock(\.failures) }
    /// The expiry of the server's certificate, in seconds since 1970.
    var expires: Int64 { state.withLock(\.loaded.expires) }

    /// The pin of the key, by which links name a server whose certificate is signed by itself or by its
    /// house; nil for any other. Its issuer vouches for that one, also with another key.
    var pin: String? { state.withLock(\.loaded.pin) }

    /// Reloads the files if they changed. If the new ones do not work, the old ones stay in use.
    /// - Parameter isAsked: Whether to reload in any case.
    func refresh(isAsked: Bool = false, logger: Logger) {
        let seen = Self.look(at: files)
        let isChanged = state.withLock { state in
            defer { state.seen = seen }
            return state.seen != seen
        }
        guard isChanged || isAsked else { return }
        do throws(ServerStartError) {
            let loaded = try Self.load(files)
            state.withLock { $0.loaded = loaded }
            logger.notice(
                "The TLS certificate was read again.",
                metadata: ["expires": "\(Self.day(loaded.expires))"])
        } catch {
            state.withLock { $0.failures += 1 }
            logger.error(
                "The new TLS certificate cannot be used. The current one stays in use.",
                metadata: ["reason": "\(error)"])
        }
    }

    /// A sentence if the certificate has expired or will soon.
    func warning(now: Int64) -> String? {
        let days = (expires - now) / 86_400
        if expires <= now { return "the TLS certificate expired on \(Self.day(expires))" }
        return days < 14 ? "the TLS certificate expires on \(Self.day(expires))" : nil
    }

    private static func day(_ seconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601.year().month().day())
    }

    private static func load(_ files: ServerTLS) throws(ServerStartError) -> Loaded {
        let chain = try certificates(files.certificatePath)
        guard let bytes = try PrivateFile.readKey(files.keyPath) else {
            throw .fileUnusable(path: files.keyPath, reason: "there is no such file")
        }
        let key: NIOSSLPrivateKey
        do { key = try NIOSSLPrivateKey(bytes: bytes, format: .pem) } catch {
            throw .fileUnusable(
                path: files.keyPath, reason: "it has no private key in PEM without a passphrase")
        }
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        configuration.cipherSuiteValues = ciphers
        configuration.applicationProtocols = ["http/1.1"]
        do {
            return Loaded(
                context: try NIOSSLContext(configuration: configuration),
                expires: Int64(chain[0].notValidAfter),
                pin: Self.pin(of: chain[0], isLasting: files.hasLastingKey))
        } catch {
            throw .fileUnusable(
                path: files.keyPath,
                reason: "it is not the key of the certificate in \(files.certificatePath)")
        }
    }

    /// Nil where an issuer may vouch for another key.
    private static func pin(of certificate: NIOSSLCertificate, isLasting: Bool) -> String? {
        guard isLasting || isSelfSigned(certificate),
            let key = try? certificate.extractPublicKey().toSPKIBytes()
        else { return nil }
        return "sha256//" + Data(SHA256.hash(data: key)).base64EncodedString()
    }

    /// Whether a certificate names its subject as its issuer.
    private static func isSelfSigned(_ certificate: NIOSSLCertificate) -> Bool {
        let parsed = try? Certificate(derEncoded: certificate.toDERBytes())
        return parsed.map { $0.issuer == $0.subject } ?? false
    }

    /// For TLS 1.2, where 1.3 is not supported: with forward secrecy and authenticated encryption.
    private static let ciphers: [NIOTLSCipher] = [
        .TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        .TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, .TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        .TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        .TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ]

    private static func certificates(
        _ path: String
    ) throws(ServerStartError) -> [NIOSSLCertificate] {
        guard let bytes = FileManager.default.contents(atPath: path) else {
            throw .fileUnusable(path: path, reason: "it cannot be read")
        }
        guard let chain = try? NIOSSLCertificate.fromPEMBytes([UInt8](bytes)), !chain.isEmpty
        else { throw .fileUnusable(path: path, reason: "it has no certificate in PEM") }
        return chain
    }

    private static func look(at files: ServerTLS) -> [FileStatus?] {
        [FileStatus(path: files.certificatePath), FileStatus(path: files.keyPath)]
    }
}

/// Reloads the TLS files at each SIGHUP.
struct TLSReloading: Service {
    let identity: TLSIdentity
    let logger: Logger

    func run() async throws {
        let signals = await UnixSignalsSequence(trapping: .sighup)
        for await _ in signals.cancelOnGracefulShutdown() {
            identity.refresh(isAsked: true, logger: logger)
        }
    }
}
