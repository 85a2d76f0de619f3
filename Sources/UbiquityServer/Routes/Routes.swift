// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird

/// The addresses of the protocol, and who answers them.
struct Routes: Sendable {
    let accounts: AccountRoutes
    let stores: StoreRoutes
    let push: PushRoute
    let stream: StreamRoute
    let exports: ExportRoutes

    /// All that a client may think of.
    private static let methods: [HTTPRequest.Method] = [
        .get, .head, .post, .put, .patch, .delete, .options, .trace,
        HTTPRequest.Method("QUERY")!,
    ]

    typealias Answer = @Sendable (Request, ServerContext) async throws -> Response

    func router() -> Router<ServerContext> {
        let router = Router(context: ServerContext.self)
        router.add(middleware: ProblemMiddleware())
        on(router, "/v1/config", [.get: stores.config])
        on(router, "/v1/sign-in", [.post: accounts.signIn])
        on(router, "/v1/accounts", [.post: accounts.create])
        on(router, "/v1/accounts/{name}/codes", [.post: accounts.newCode])
        on(router, "/v1/account", [.get: accounts.show])
        on(router, "/v1/account/export", [.get: exports.own])
        on(router, "/v1/accounts/{name}/export", [.get: exports.named])
        on(
            router, "/v1/devices/{id}",
            [.get: accounts.showDevice, .delete: accounts.revokeDevice])
        on(router, "/v1/stores", [.get: stores.list])
        on(
            router, "/v1/stores/{identifier}/changes", [.get: changes, .post: push.commit])
        return router
    }

    @Sendable private func changes(
        _ request: Request, _ context: ServerContext
    ) async throws -> Response {
        request.acceptsEventStream
            ? try await stream.open(request, context) : try await stores.changes(request, context)
    }

    /// Methods that the path does not have get 405 rather than 404.
    private func on(
        _ router: Router<ServerContext>, _ path: RouterPath,
        _ answers: [HTTPRequest.Method: Answer]
    ) {
        let allow = answers.keys.map(\.rawValue).sorted().joined(separator: ", ")
        for method in Self.methods {
            let answer = answers[method] ?? { _, _ in throw Problem.methodNotAllowed(allow) }
            router.on(path, method: method, use: answer)
        }
    }
}
