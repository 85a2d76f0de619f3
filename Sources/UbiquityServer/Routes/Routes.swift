// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import Logging
internal import NIOHTTP1
internal import NIOHTTPTypesHTTP1
internal import UbiquityCore

/// All addresses of the server, and their handlers.
struct Routes: Sendable {
    var gate: Gate
    let accounts: AccountRoutes
    var pairing: PairingRoutes
    var operations: OperatorRoutes
    let stores: StoreRoutes
    let histories: HistoryRoutes
    let push: PushRoute
    let stream: StreamRoute
    var exports: ExportRoutes
    let health: HealthRoutes
    let metrics: MetricsSource
    /// Nil where the page is not served.
    var page: PageRoutes?
    /// Nil for any rate.
    var requests: RateLimiter<IPAddress?>?

    /// All methods that a client may try.
    private static let methods: [HTTPRequest.Method] = [
        .get, .head, .post, .put, .patch, .delete, .options, .trace,
        HTTPRequest.Method("QUERY")!,
    ]

    /// All routes: the router has no others.
    var all: [Route] {
        [
            Route(.get, "/health/live", .anybodys, health.live),
            Route(.get, "/health/ready", .anybodys, health.ready),
            Route(.get, "/v1/config", .anybodys, stores.config),
            Route(.post, "/v1/sign-in", .anybodys, accounts.signIn),
            Route(.post, "/v1/sign-in-requests", .anybodys, pairing.ask),
            Route(.get, "/v1/sign-in-requests/{code}", .signInRequest, pairing.show),
            Route(.delete, "/v1/sign-in-requests/{code}", .signInRequest, pairing.deny),
            Route(
                .post, "/v1/sign-in-requests/{code}/approval", .approveSignIn(nil),
                pairing.approve),

            Route(.get, "/v1/accounts", .operators, operations.listAccounts),
            Route(.post, "/v1/accounts", .operators, operations.create),
            Route(.patch, "/v1/accounts/{name}", .operators, operations.rename),
            Route(.get, "/v1/accounts/{name}/limits", .operators, operations.readLimits),
            Route(.put, "/v1/accounts/{name}/limits", .operators, operations.limit),
            Route(.delete, "/v1/accounts/{name}", .operators, operations.erase),
            Route(.post, "/v1/accounts/{name}/codes", .operators, operations.newCode),
            Route(.get, "/v1/accounts/{name}/stores", .operators, operations.listStores),
            Route(.get, "/v1/accounts/{name}/devices", .operators, operations.listDevices),
            Route(
                .patch, "/v1/accounts/{name}/devices/{id}", .operators,
                operations.renameDevice),
            Route(
                .delete, "/v1/accounts/{name}/devices/{id}", .operators,
                operations.revokeDevice),
            Route(.get, "/v1/accounts/{name}/export", .operators, exports.named),
            Route(.get, "/v1/apps", .operators, operations.listApps),
            Route(.put, "/v1/apps/{identifier}", .operators, operations.register),
            Route(.delete, "/v1/apps/{identifier}", .operators, operations.removeApp),
            Route(.get, "/v1/audit", .operators, operations.audit),
            Route(.get, "/v1/metrics", .operators, metrics.read),

            Route(.get, "/v1/account", .itself, accounts.show),
            Route(.get, "/v1/account/export", .wholeAccount, exports.own),
            Route(.delete, "/v1/account", .wholeAccount, accounts.erase),
            Route(.post, "/v1/codes", .makeOwnCode(nil), pairing.newCode),
            Route(.get, "/v1/devices", .wholeAccount, accounts.listDevices),
            Route(.get, "/v1/devices/{id}", accounts.showDevice),
            Route(.patch, "/v1/devices/{id}", accounts.renameDevice),
            Route(.delete, "/v1/devices/{id}", accounts.revokeDevice),

            Route(.get, "/v1/stores", .itself, stores.list),
            Route(.get, "\(Self.storePath)devices", stores.deliveries),
            Route(.get, "\(Self.storePath)changes", changes),
            Route(.post, "\(Self.storePath)changes", push.commit),
            Route(.get, "\(Self.storePath)history", histories.list),
            Route(.get, "\(Self.storePath)snapshot", histories.snapshot),
        ] + (page?.all ?? [])
    }

    /// Answers requests. The frequent ones, for the content of stores, are answered on the
    /// connection's event loop, all others in a task each.
    func responder(logger: Logger) -> HTTPConnection.Responder {
        let others = TaskResponder(responder: router().buildResponder(), logger: logger)
        let paths = Dictionary(grouping: all.filter(\.isOnLoop), by: \.path)
            .map { StorePath($0, routes: $1) }
            // The most frequent one first.
            .sorted { $0.path < $1.path }
        return { [requests, gate] exchange in
            exchange.attempt {
                try requests?.take(exchange.origin?.neighbourhood)
                let text = exchange.request.plainPath
                for path in paths {
                    guard let store = path.storeText(in: text) else { continue }
                    return try path.answer(exchange, storeText: store, gate)
                }
                others.answer(exchange)
            }
        }
    }

    fileprivate static let storePath = "/v1/stores/{identifier}/"

    /// A path whose routes are answered on the connection's event loop.
    private struct StorePath: Sendable {
        let path: String
        private let suffix: String
        private let get: Route?
        private let post: Route?
        private let allow: String

        init(_ path: String, routes: [Route]) {
            self.path = path
            suffix = "/\(path.dropFirst(storePath.count))"
            (get, post) = (
                routes.first { $0.method == .get }, routes.first { $0.method == .post }
            )
            allow = Routes.allow(routes)
        }

        /// The identifier in this path, not decoded; nil for another path.
        func storeText(in path: Substring) -> Substring? {
            let (prefix, suffix, slash) = ("/v1/stores/".utf8, suffix.utf8, UInt8(ascii: "/"))
            var path = path.utf8
            if path.last == slash { path.removeLast() }
            guard path.starts(with: prefix), path.suffix(suffix.count).elementsEqual(suffix) else {
                return nil
            }
            let text = path.dropFirst(prefix.count).dropLast(suffix.count)
            return text.isEmpty || text.contains(slash) ? nil : Substring(text)
        }

        func answer(_ exchange: Exchange, storeText: Substring, _ gate: Gate) throws(Problem) {
            exchange.route = path
            switch exchange.request.method {
            case .GET, .HEAD:
                guard let get else { throw .methodNotAllowed(allow) }
                get.answer(exchange, storeText: storeText, gate)
            case .POST:
                guard let post else { throw .methodNotAllowed(allow) }
                post.answer(exchange, storeText: storeText, gate)
            case .OPTIONS: exchange.answer(Answer(.noContent, headers: [.allow: allow]))
            case let method:
                let isKnown = (try? HTTPRequest.Method(method)).map(Routes.methods.contains)
                throw isKnown ?? false ? Problem.methodNotAllowed(allow) : Problem.notFound
            }
        }
    }

    @Sendable private func changes(
        _ exchange: Exchange, _ rights: DeviceRights, _ store: StoreReference
    ) throws {
        exchange.request.headers.acceptsEventStream
            ? try stream.open(exchange, rights, store)
            : try stores.changes(exchange, rights, store)
    }

    func router() -> Router<ServerContext> {
        let router = Router(context: ServerContext.self)
        router.add(middleware: ServerMiddleware(allow: Self.allow(all)))
        for (path, routes) in Dictionary(grouping: all.filter { !$0.isOnLoop }, by: \.path) {
            on(router, path, routes)
        }
        return router
    }

    /// Adds 405 instead of 404 for methods that the path does not have. HEAD is answered like GET,
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

/// Answers `OPTIONS *`, which concerns the server rather than an address, and turns errors into
/// problems before the router makes answers of some.
private struct ServerMiddleware: RouterMiddleware {
    typealias Context = ServerContext

    let allow: String

    func handle(
        _ request: Request, context: ServerContext,
        next: @concurrent (Request, ServerContext) async throws -> Response
    ) async throws -> Response {
        guard request.method == .options, request.head.path == "*" else {
            do { return try await next(request, context) } catch { throw Problem(error) }
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
