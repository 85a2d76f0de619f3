// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import UbiquityCore

/// The addresses of the protocol and their handlers.
struct Routes: Sendable {
    var gate: Gate
    let accounts: AccountRoutes
    var operations: OperatorRoutes
    let stores: StoreRoutes
    let push: PushRoute
    let stream: StreamRoute
    var exports: ExportRoutes
    let health: HealthRoutes
    var edge: Edge
    /// Nil for any rate.
    var requests: RateLimiter<String>?

    /// All methods that a client may try.
    private static let methods: [HTTPRequest.Method] = [
        .get, .head, .post, .put, .patch, .delete, .options, .trace,
        HTTPRequest.Method("QUERY")!,
    ]

    /// All routes: the router has no others.
    var all: [Route] {
        [
            Route(.get, "/health/live", .readHealth, health.live),
            Route(.get, "/health/ready", .readHealth, health.ready),
            Route(.get, "/v1/config", .readConfig, stores.config),
            Route(.post, "/v1/sign-in", .signIn, accounts.signIn),

            Route(.get, "/v1/accounts", .listAccounts, operations.listAccounts),
            Route(.post, "/v1/accounts", .createAccount, operations.create),
            Route(.patch, "/v1/accounts/{name}", .renameAccount, operations.rename),
            Route(.delete, "/v1/accounts/{name}", .eraseAccount, operations.erase),
            Route(.post, "/v1/accounts/{name}/codes", .makeCode, operations.newCode),
            Route(
                .get, "/v1/accounts/{name}/devices", .listDevicesOfAccount,
                operations.listDevices),
            Route(
                .patch, "/v1/accounts/{name}/devices/{id}", .renameDeviceOfAccount,
                operations.renameDevice),
            Route(
                .delete, "/v1/accounts/{name}/devices/{id}", .revokeDeviceOfAccount,
                operations.revokeDevice),
            Route(.get, "/v1/accounts/{name}/export", .exportAccount, exports.named),
            Route(.get, "/v1/apps", .listApps, operations.listApps),
            Route(.put, "/v1/apps/{identifier}", .registerApp, operations.register),
            Route(.delete, "/v1/apps/{identifier}", .removeApp, operations.removeApp),
            Route(.get, "/v1/audit", .readAudit, operations.audit),

            Route(.get, "/v1/account", .readOwnAccount, accounts.show),
            Route(.get, "/v1/account/export", .exportOwnAccount, exports.own),
            Route(.delete, "/v1/account", .eraseOwnAccount, accounts.erase),
            Route(.get, "/v1/devices", .listDevices, accounts.listDevices),
            Route(.get, "/v1/devices/{id}", { .readDevice($0) }, accounts.showDevice),
            Route(.patch, "/v1/devices/{id}", { .renameDevice($0) }, accounts.renameDevice),
            Route(.delete, "/v1/devices/{id}", { .revokeDevice($0) }, accounts.revokeDevice),

            Route(.get, "/v1/stores", .listStores, stores.list),
            Route(.get, "/v1/stores/{identifier}/changes", { .readStore($0) }, changes),
            Route(
                .post, "/v1/stores/{identifier}/changes", { .pushToStore($0) }, push.commit),
        ]
    }

    func router() -> Router<ServerContext> {
        let router = Router(context: ServerContext.self)
        router.add(middleware: EdgeMiddleware(edge: edge))
        router.add(middleware: ProblemMiddleware(edge: edge))
        if let requests { router.add(middleware: RateMiddleware(requests: requests)) }
        router.add(middleware: ServerOptions(allow: Self.allow(all)))
        for (path, routes) in Dictionary(grouping: all, by: \.path) { on(router, path, routes) }
        return router
    }

    @Sendable private func changes(
        _ request: Request, _ context: ServerContext, _ rights: DeviceRights,
        _ store: StoreReference
    ) async throws -> Response {
        request.headers.acceptsEventStream
            ? try await stream.open(request, context, rights, store)
            : try await stores.changes(request, context, rights, store)
    }

    /// Adds 405 in place of 404 for methods that the path does not have. HEAD is answered like GET,
    /// and OPTIONS lists the methods for anybody.
    private func on(_ router: Router<ServerContext>, _ path: String, _ routes: [Route]) {
        let allow = Self.allow(routes)
        for method in Self.methods {
            let sought = method == .head ? .get : method
            let route = routes.first { $0.method == sought }
            router.on(RouterPath(path), method: method) { [gate] request, context in
                // The router ignores empty parts between two slashes.
                guard request.head.path?.hasEmptyPart != true else { throw Problem.notFound }
                if method == .options {
                    return Response(status: .noContent, headers: [.allow: allow])
                }
                guard let route else { throw Problem.methodNotAllowed(allow) }
                return try await route.answer(request, context, gate)
            }
        }
    }

    private static func allow(_ routes: [Route]) -> String {
        var names = Set(routes.map(\.method.rawValue)).union(["OPTIONS"])
        if names.contains("GET") { names.insert("HEAD") }
        return names.sorted().joined(separator: ", ")
    }
}

/// Answers `OPTIONS *`, which concerns the server rather than an address.
private struct ServerOptions: RouterMiddleware {
    typealias Context = ServerContext

    let allow: String

    func handle(
        _ request: Request, context: ServerContext,
        next: @concurrent (Request, ServerContext) async throws -> Response
    ) async throws -> Response {
        guard request.method == .options, request.head.path == "*" else {
            return try await next(request, context)
        }
        return Response(status: .noContent, headers: [.allow: allow])
    }
}

extension String {
    /// Whether an address without a host has two slashes before the query.
    fileprivate var hasEmptyPart: Bool {
        hasPrefix("/") && prefix { $0 != "?" }.contains("//")
    }
}
