// SPDX-License-Identifier: Apache-2.0

internal import Hummingbird
internal import UbiquityCore
internal import UbiquityWire

/// Reads stores.
struct StoreRoutes: Sendable {
    let reader: StoreReader
    let settings: ServerSettings

    @Sendable func config(_ request: Request, _ context: ServerContext) async throws -> Response {
        Response(WireConfig(ServerConfig(settings)), try request.answerFormat)
    }

    /// A confined device only sees its stores.
    @Sendable func list(
        _ request: Request, _ context: ServerContext, _ rights: DeviceRights
    ) async throws -> Response {
        let format = try request.answerFormat
        var list = WireStoreList()
        list.stores = try await reader.stores(of: rights.account)
            .filter { rights.reaches($0.identifier) }.map(WireStoreList.Store.init)
        return Response(list, format)
    }

    func changes(
        _ request: Request, _ context: ServerContext, _ rights: DeviceRights,
        _ store: StoreReference
    ) async throws -> Response {
        let format = try request.answerFormat
        let since = try request.position(orLastEvent: false)
        let answer = try await reader.answer(
            .message(format), of: store, since: since, for: rights)
        return answer.held.response(format, on: context.channel.eventLoop)
    }
}

extension ServerConfig {
    init(_ settings: ServerSettings) {
        self.init(
            serverMilliseconds: settings.clock.now(), limits: settings.limits,
            allowance: settings.allowance,
            deletionsRememberedSeconds: settings.deletionsRememberedSeconds,
            keepAliveSeconds: Int64(settings.keepAliveSeconds))
    }
}

extension WireStoreList.Store {
    fileprivate init(_ store: StoreSummary) {
        self.init()
        identifier = store.identifier.string
        keys = UInt64(clamping: store.usage.keys)
        bytes = UInt64(clamping: store.usage.bytes)
        cursor = store.position.cursor.text
    }
}
