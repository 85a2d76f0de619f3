// SPDX-License-Identifier: Apache-2.0

internal import Hummingbird
internal import UbiquityCore
internal import UbiquityWire

/// Reading stores.
struct StoreRoutes: Sendable {
    let reader: StoreReader
    let authenticator: Authenticator
    let settings: ServerSettings

    @Sendable func config(_ request: Request, _ context: ServerContext) async throws -> Response {
        Response(WireConfig(ServerConfig(settings)), try request.answerFormat)
    }

    @Sendable func list(_ request: Request, _ context: ServerContext) async throws -> Response {
        let device = try await authenticator.device(request.bearer)
        let format = try request.answerFormat
        var list = WireStoreList()
        list.stores = try await reader.stores(of: device.account).map(WireStoreList.Store.init)
        return Response(list, format)
    }

    @Sendable func changes(_ request: Request, _ context: ServerContext) async throws -> Response {
        let device = try await authenticator.device(request.bearer)
        let format = try request.answerFormat
        let store = try StoreKey(context, of: device.account)
        let since = try request.position(orLastEvent: false)
        let bytes = try await reader.changes(of: store, since: since, for: device) { changes in
            format.encode(WireChanges(changes))
        }
        return Response(bytes: bytes, format)
    }
}

extension StoreKey {
    /// The store that a path names, of the account that a credential names.
    /// - Throws: ``Problem``.
    init(_ context: ServerContext, of account: AccountID) throws(Problem) {
        let text = try context.parameters.text("identifier")
        do { self.init(account: account, identifier: try StoreIdentifier(text)) } catch {
            throw Problem.malformed("\(error).")
        }
    }
}

extension ServerConfig {
    init(_ settings: ServerSettings) {
        self.init(
            serverMilliseconds: settings.clock.now(), limits: settings.limits,
            allowance: settings.allowance,
            deletionsRememberedSeconds: settings.deletionsRememberedSeconds)
    }
}

extension WireStoreList.Store {
    fileprivate init(_ store: StoreSummary) {
        self.init()
        identifier = store.identifier.string
        keys = UInt64(store.usage.keys)
        bytes = UInt64(store.usage.bytes)
        cursor = store.position.cursor.text
    }
}
