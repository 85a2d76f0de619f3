// SPDX-License-Identifier: Apache-2.0

internal import AsyncHTTPClient
internal import NIOCore
internal import UbiquityCore

/// The process's one HTTP client: its stores share the connections and the threads.
enum SharedHTTPClient {
    /// Beyond all that a ``SilenceWatch`` waits for.
    static let silenceSecondsMax = TransferPatience.streamMillisecondsMax / 1_000 + 10
    static let connectSecondsMax: Int64 = 10
    private static let sendBufferBytes: SocketOptionValue = 64 << 10

    static let client = HTTPClient(
        eventLoopGroup: HTTPClient.defaultEventLoopGroup, configuration: configuration)

    private static var configuration: HTTPClient.Configuration {
        var configuration = HTTPClient.Configuration(
            tlsConfiguration: TrustedCertificates.system,
            // A redirection would carry the credential to an address nobody chose.
            redirectConfiguration: .disallow,
            timeout: .init(
                connect: .seconds(connectSecondsMax), read: .seconds(silenceSecondsMax)))
        // When to try again is the engine's decision, and it wants to hear of the failure now.
        configuration.connectionPool.retryConnectionEstablishment = false
        // What a system has taken for sending is not seen to move, so it must not take much.
        configuration.http1_1ConnectionDebugInitializer = { channel in
            channel.setOption(.socketOption(.so_sndbuf), value: sendBufferBytes)
        }
        // Each store's stream holds a connection of HTTP/1.1; pushes must not wait for one.
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 1_024
        return configuration
    }
}
