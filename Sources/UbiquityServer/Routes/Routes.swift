// SPDX-License-Identifier: Apache-2.0

internal import NIOHTTP1
internal import UbiquityCore

/// All addresses of the server, and their handlers.
struct Routes: Sendable {
    var gate: Gate
    let accounts: AccountRoutes
    var pairing: PairingRoutes
    var operations: OperatorRoutes
    let stores: StoreRoutes
    let histories: HistoryRoutes
    let sealing: SealingRoutes
    let push: PushRoute
    let stream: StreamRoute
    var exports: ExportRoutes
    let health: HealthRoutes
    let metrics: MetricsSource
    /// Nil unless the server made its certificate itself.
    let house: HouseRoutes?
    /// Nil where the page is not served.
    var page: PageRoutes?
    /// Nil for any rate.
    var requests: RateLimiter<IPAddress?>?

    /// All routes, the frequent ones first.
    var all: [Route] {
        [
            Route(.GET, "\(Self.storePath)changes", changes),
            Route(.POST, "\(Self.storePath)changes", push.commit),
            Route(.POST, "/v1/changes", .itself, stream.openSeveral),
            Route(.GET, "\(Self.storePath)history", histories.list),
            Route(.GET, "\(Self.storePath)snapshot", histories.snapshot),
            Route(.GET, "\(Self.storePath)devices", stores.deliveries),
            Route(.GET, "\(Self.storePath)whole", stores.whole),
            Route(.PUT, "\(Self.storePath)whole", sealing.replace),

            Route(.GET, "/health/live", .anybodys, health.live),
            Route(.GET, "/health/ready", .anybodys, health.ready),
            Route(.GET, "/v1/config", .anybodys, stores.config),
            Route(.POST, "/v1/sign-in", .anybodys, accounts.signIn),
            Route(.POST, "/v1/sign-in-requests", .anybodys, pairing.ask),
            Route(.GET, "/v1/sign-in-requests/{code}", .signInRequest, pairing.show),
            Route(.DELETE, "/v1/sign-in-requests/{code}", .signInRequest, pairing.deny),
            Route(
                .POST, "/v1/sign-in-requests/{code}/approval", .approveSignIn(nil),
                pairing.approve),

            Route(.GET, "/v1/accounts", .operators, operations.listAccounts),
            Route(.POST, "/v1/accounts", .operators, operations.create),
            Route(.PATCH, "/v1/accounts/{name}", .operators, operations.rename),
            Route(.GET, "/v1/accounts/{name}/limits", .operators, operations.readLimits),
            Route(.PUT, "/v1/accounts/{name}/limits", .operators, operations.limit),
            Route(.DELETE, "/v1/accounts/{name}", .operators, operations.erase),
            Route(.DELETE, "/v1/accounts/{name}/sealing", .operators, operations.reset),
            Route(.POST, "/v1/accounts/{name}/codes", .operators, operations.newCode),
            Route(.GET, "/v1/accounts/{name}/stores", .operators, operations.listStores),
            Route(.GET, "/v1/accounts/{name}/devices", .operators, operations.listDevices),
            Route(
                .PATCH, "/v1/accounts/{name}/devices/{id}", .operators,
                operations.renameDevice),
            Route(
                .DELETE, "/v1/accounts/{name}/devices/{id}", .operators,
                operations.revokeDevice),
            Route(.GET, "/v1/accounts/{name}/export", .operators, exports.named),
            Route(.GET, "/v1/apps", .operators, operations.listApps),
            Route(.PUT, "/v1/apps/{identifier}", .operators, operations.register),
            Route(.DELETE, "/v1/apps/{identifier}", .operators, operations.removeApp),
            Route(.GET, "/v1/audit", .operators, operations.audit),
            Route(.GET, "/v1/metrics", .operators, metrics.read),

            Route(.GET, "/v1/account", .itself, accounts.show),
            Route(.GET, "/v1/account/export", .wholeAccount, exports.own),
            Route(.DELETE, "/v1/account", .wholeAccount, accounts.erase),
            Route(.GET, "/v1/sealing", .itself, sealing.show),
            Route(.PUT, "/v1/sealing", .wholeAccount, sealing.seal),
            Route(.DELETE, "/v1/sealing", .wholeAccount, sealing.reset),
            Route(.PUT, "/v1/handovers/{id}", .itself, sealing.handOver),
            Route(.GET, "/v1/handovers/{id}", .itself, sealing.takeOver),
            Route(.POST, "/v1/codes", .makeOwnCode(nil), pairing.newCode),
            Route(.GET, "/v1/devices", .wholeAccount, accounts.listDevices),
            Route(.GET, "/v1/devices/{id}", accounts.showDevice),
            Route(.PATCH, "/v1/devices/{id}", accounts.renameDevice),
            Route(.DELETE, "/v1/devices/{id}", accounts.revokeDevice),

            Route(.GET, "/v1/stores", .itself, stores.list),
        ] + (house?.all ?? []) + (page?.all ?? [])
    }

    private static let storePath = "/v1/stores/{identifier}/"

    /// A client that accepts an event stream opens one.
    @Sendable private func changes(
        _ exchange: Exchange, _ rights: DeviceRights, _ store: StoreReference
    ) throws {
        exchange.request.headers.acceptsEventStream
            ? try stream.open(exchange, rights, store)
            : try stores.changes(exchange, rights, store)
    }

    /// Answers requests.
    var responder: HTTPConnection.Responder {
        let table = RouteTable(all)
        return { [requests, gate] exchange in
            exchange.attempt {
                try requests?.take(exchange.origin?.neighbourhood)
                try table.answer(exchange, gate)
            }
        }
    }
}
