// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import Logging
internal import NIOCore
internal import ServiceLifecycle
internal import UbiquityCore

/// Serves `GET /metrics` on a port of its own, for the operator's Prometheus, and not for a foreign web
/// page that calls it by a name of its own.
struct MetricsService: Service {
    let host: String
    let port: Int
    let hosts: HostRule
    let text: @Sendable () -> String
    let onReady: @Sendable (_ port: Int) async -> Void
    let logger: Logger

    private static let connectionsMax = 16

    /// - Throws: ``ServerStartError`` if it cannot listen.
    func run() async throws {
        do { try await application.run() } catch {
            throw ServerStartError(listening: error, host: host, port: port)
        }
    }

    private var application: some ApplicationProtocol {
        let router = Router()
        router.get("/metrics") { [text, hosts] request, _ in
            guard hosts.admitsAddress(request.head.authority ?? "") else {
                return Response(status: .misdirectedRequest)
            }
            return Response(metrics: text())
        }
        return Application(
            router: router,
            server: .http1(configuration: .init(idleTimeout: .seconds(60))),
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: port),
                availableConnectionsDelegate: .maximum(Self.connectionsMax, logger: logger)),
            onServerRunning: { [onReady] in await onReady($0.localAddress?.port ?? 0) },
            logger: logger)
    }
}

extension Response {
    init(metrics text: String) {
        self.init(
            status: .ok, headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }
}

/// The system's figures about this process and its files.
enum SystemFigures {
    /// Nil if the system does not provide it.
    static var memoryBytes: Int? {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else {
            return nil
        }
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) }
        return pages.map { $0 * sysconf(Int32(_SC_PAGESIZE)) }
    }

    /// The total size of the files that exist.
    static func bytes(ofFiles paths: [String]) -> Int {
        paths.reduce(0) { $0 + (FileStatus(path: $1)?.bytes ?? 0) }
    }
}
