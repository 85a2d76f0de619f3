// SPDX-License-Identifier: Apache-2.0

internal import AsyncHTTPClient
internal import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import Synchronization
internal import UbiquityCore

/// The process's only HTTP client. Its stores share the connections and the thread.
enum SharedHTTPClient {
    static let connectSecondsMax: Int64 = 10
    private static let sendBufferBytes: SocketOptionValue = 64 << 10

    /// The client, with a single event loop, because requests and connections on different ones can
    /// trap: where a server answers before it has the whole request and closes, AsyncHTTPClient
    /// 1.37 learns on the connection's loop of a request whose connection it has already removed
    /// ("A connection that we don't know was released?").
    static let client = HTTPClient(
        eventLoopGroup: MultiThreadedEventLoopGroup(numberOfThreads: 1),
        configuration: configuration)

    private static var configuration: HTTPClient.Configuration {
        var configuration = HTTPClient.Configuration(
            tlsConfiguration: TrustedCertificates.system,
            // A redirect would send the credential to an address that nobody chose.
            redirectConfiguration: .disallow,
            // An ``AnswerReceiver`` ends a request that is silent.
            timeout: .init(connect: .seconds(connectSecondsMax)))
        // The engine decides when to retry, and needs to know of the failure now.
        configuration.connectionPool.retryConnectionEstablishment = false
        // Bytes in the system's send buffer do not count as progress, so it must be small.
        configuration.http1_1ConnectionDebugInitializer = { channel in
            channel.setOption(.socketOption(.so_sndbuf), value: sendBufferBytes).flatMapThrowing {
                try channel.pipeline.syncOperations.addHandler(TurnFlushHandler())
            }
        }
        // Each store's stream occupies an HTTP/1.1 connection; pushes must not wait for one.
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 1_024
        return configuration
    }
}

/// Sends what is written in one turn of the event loop at once. AsyncHTTPClient flushes the head, the
/// body and the end of a request one by one, and the server would have to wake for each.
private final class TurnFlushHandler: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    private var isPlanned = false

    func flush(context: ChannelHandlerContext) {
        guard !isPlanned else { return }
        isPlanned = true
        context.eventLoop.assumeIsolated().execute { [self] in
            isPlanned = false
            context.flush()
        }
    }

    func close(
        context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?
    ) {
        if isPlanned { context.flush() }
        context.close(mode: mode, promise: promise)
    }
}

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
                "the file to trust is not a certificate: a PEM file begins with -----BEGIN "
                    + "CERTIFICATE-----")
        }
        var configuration = system
        configuration.trustRoots = .certificates(certificates)
        known.withLock { $0[pem] = configuration }
        return configuration
    }
}
