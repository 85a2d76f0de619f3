// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// For whoever watches the server: whether it lives, and whether it can work. Strangers may ask,
/// and learn no more.
struct HealthRoutes: Sendable {
    let readiness: Readiness

    /// An answer at all is the answer.
    @Sendable func live(_ request: Request, _ context: ServerContext) async throws -> Response {
        Self.fine
    }

    @Sendable func ready(_ request: Request, _ context: ServerContext) async throws -> Response {
        guard readiness.isReady else { throw Problem.notReady }
        return Self.fine
    }

    private static var fine: Response {
        Response(
            status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: "{\"status\":\"ok\"}")))
    }
}
