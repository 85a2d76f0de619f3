// SPDX-License-Identifier: Apache-2.0

internal import AsyncHTTPClient
internal import NIOCore
internal import UbiquityCore

/// The process's only HTTP client. Its stores share the connections and the threads.
enum SharedHTTPClient {
    /// Longer than any ``SilenceWatch`` waits.
    static let silenceSecondsMax = IdleTimeout.streamMillisecondsMax / 1_000 + 10
    static let connectSecondsMax: Int64 = 10
    private static let sendBufferBytes: SocketOptionValue = 64 << 10

    static let client = HTTPClient(
        eventLoopGroup: HTTPClient.defaultEventLoopGroup, configuration: configuration)

    private static var configuration: HTTPClient.Configuration {
        var configuration = HTTPClient.Configuration(
            tlsConfiguration: TrustedCertificates.system,
            // A redirect would send the credential to an address that nobody chose.
            redirectConfiguration: .disallow,
            timeout: .init(
                connect: .seconds(connectSecondsMax), read: .seconds(silenceSecondsMax)))
        // The engine decides when to retry, and needs to know of the failure now.
        configuration.connectionPool.retryConnectionEstablishment = false
        // Bytes in the system's send buffer do not count as progress, so it must be small.
        configuration.http1_1ConnectionDebugInitializer = { channel in
            channel.setOption(.socketOption(.so_sndbuf), value: sendBufferBytes)
        }
        // Each store's stream occupies an HTTP/1.1 connection; pushes must not wait for one.
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 1_024
        return configuration
    }
}
