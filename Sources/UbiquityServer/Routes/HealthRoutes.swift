// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import Logging
internal import NIOCore

/// Health checks for monitoring: whether the server is alive, and whether it can work. Strangers
/// may ask, and learn nothing else.
struct HealthRoutes: Sendable {
    let readiness: Readiness

    /// Answering is enough.
    @Sendable func live(_ request: Request, _ context: ServerContext) async throws -> Response {
        Self.fine
    }

    @Sendable func ready(_ request: Request, _ context: ServerContext) async throws -> Response {
        guard !readiness.isReady else { return Self.fine }
        if readiness.shouldLog() { context.logger.error("The server is not ready.") }
        throw Problem.notReady
    }

    private static var fine: Response {
        Response(
            status: .ok, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: "{\"status\":\"ok\"}")))
    }
}
