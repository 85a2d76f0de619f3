// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import UbiquityCore
internal import UbiquityWire

/// The operator's requests.
struct OperatorRoutes: Sendable {
    var service: OperatorService
    let writer: BlockingThreads
    let readers: BlockingThreads
    let revocation: Revocation
    let apps: AppRegistry
    let firstRun: FirstRun

    private static let accountsPerAnswerMax = 1_000
    private static let auditEntriesPerAnswerMax = 1_000
    private static let auditEntriesPerAnswer = 100

    // MARK: Accounts

    @Sendable func listAccounts(
        _ request: Request, _ context: ServerContext
    ) async throws -> Response {
        let format = try request.answerFormat
        let after = try request.uri.queryParameters["after"].map { try Self.accountName("\($0)") }
        let part = try request.uri.part(bytesMax: AccountName.bytesMax)
        let max = try request.uri.count("limit", max: Self.accountsPerAnswerMax)
        let accounts = try await readers.run { [service] in
            try service.accounts(
                after: after, containing: part, max: max ?? Self.accountsPerAnswerMax)
        }
        var list = WireAccountList()
        list.accounts = accounts.map { WireAccount($0.account, $0.devices) }
        return Response(list, format)
    }

    @Sendable func create(_ request: Request, _ context: ServerContext) async throws -> Response {
        let format = try request.answerFormat
        let message = try await request.readMessage(WireNewAccount.self)
        let accountName = try Self.accountName(message.name)
        let seconds = try Self.codeSeconds(message.codeSeconds)
        let invitation = try await writer.run { [service] in
            try service.createAccount(accountName, codeSeconds: seconds)
        }
        firstRun.end()
        return Response(WireNewAccountAnswer(invitation, server: service.address), format)
    }

    @Sendable func rename(_ request: Request, _ context: ServerContext) async throws -> Response {
        let format = try request.answerFormat
        let name = try Self.account(context)
        let newName = try Self.accountName(try await request.readMessage(WireRename.self).name)
        let (account, devices) = try await writer.run { [service] in
            (try service.rename(name, to: newName), try service.devices(of: newName))
        }
        return Response(WireAccount(account, devices), format)
    }

    @Sendable func readLimits(
        _ request: Request, _ context: ServerContext
    ) async throws -> Response {
        let format = try request.answerFormat
        let name = try Self.account(context)
        let limits = try await readers.run { [service] in try service.limits(of: name) }
        return Response(WireAccountLimits(limits), format)
    }

    @Sendable func limit(_ request: Request, _ context: ServerContext) async throws -> Response {
        let format = try request.answerFormat
        let name = try Self.account(context)
        let message = try await request.readMessage(WireAccountLimits.self)
        let limits: AccountLimits
        do { limits = try AccountLimits(message) } catch { throw Problem.malformed("\(error).") }
        revocation.accountChanged(
            try await writer.run { [service] in try service.limit(name, to: limits) })
        return Response(WireAccountLimits(limits), format)
    }

    @Sendable func erase(_ request: Request, _ context: ServerContext) async throws -> Response {
        let name = try Self.account(context)
        revocation.accountChanged(try await writer.run { [service] in try service.erase(name) })
        return Response(status: .noContent)
    }

    /// Lists the stores that an erasure would remove.
    @Sendable func listStores(
        _ request: Request, _ context: ServerContext
    ) async throws -> Response {
        let format = try request.answerFormat
        let name = try Self.account(context)
        var list = WireStoreList()
        list.stores = try await readers.run { [service] in try service.stores(of: name) }
            .map(WireStoreList.Store.init)
        return Response(list, format)
    }

    @Sendable func newCode(_ request: Request, _ context: ServerContext) async throws -> Response {
        let format = try request.answerFormat
        let name = try Self.account(context)
        let message = try await request.readMessage(orNone: WireNewCode.self)
        let terms = try CredentialTerms(message.stores, seconds: message.credentialSeconds)
        let seconds = try Self.codeSeconds(message.codeSeconds)
        let invitation = try await writer.run { [service] in
            try service.newCode(name, terms, codeSeconds: seconds)
        }
        return Response(WireNewAccountAnswer(invitation, server: service.address), format)
    }

    /// Nil if the message does not say.
    private static func codeSeconds(_ seconds: UInt64) throws(Problem) -> Int64? {
        let max = PairingRule.codeSecondsMax
        guard seconds <= max else {
            throw .malformed("\"codeSeconds\": a code can be valid for at most \(max) seconds.")
        }
        return seconds == 0 ? nil : Int64(seconds)
    }

    // MARK: Devices

    @Sendable func listDevices(
        _ request: Request, _ context: ServerContext
    ) async throws -> Response {
        let format = try request.answerFormat
        let name = try Self.account(context)
        let devices = try await readers.run { [service] in try service.devices(of: name) }
        return Response(WireDeviceList(devices), format)
    }

    @Sendable func renameDevice(
        _ request: Request, _ context: ServerContext
    ) async throws -> Response {
        let format = try request.answerFormat
        let (name, id) = (try Self.account(context), try Self.device(context))
        let displayName = try await request.readTitle()
        let device = try await writer.run { [service] in
            try service.rename(id, of: name, displayName: displayName)
        }
        return Response(WireDevice(device), format)
    }

    @Sendable func revokeDevice(
        _ request: Request, _ context: ServerContext
    ) async throws -> Response {
        let (name, id) = (try Self.account(context), try Self.device(context))
        revocation.revoked(try await writer.run { [service] in try service.revoke(id, of: name) })
        return Response(status: .noContent)
    }

    // MARK: Apps

    @Sendable func listApps(_ request: Request, _ context: ServerContext) async throws -> Response {
        let format = try request.answerFormat
        let registered = try await readers.run { [service] in try service.apps() }
        return Response(WireAppList(registered, service.settings.apps), format)
    }

    @Sendable func register(_ request: Request, _ context: ServerContext) async throws -> Response {
        let identifier = try context.parameters.storeIdentifier()
        try await writer.run { [service, apps] in
            _ = try service.register(identifier)
            try apps.reload()
        }
        return Response(status: .noContent)
    }

    @Sendable func removeApp(_ request: Request, _ context: ServerContext) async throws -> Response
    {
        let identifier = try context.parameters.storeIdentifier()
        try await writer.run { [service, apps] in
            try service.removeApp(identifier)
            try apps.reload()
        }
        revocation.restricted(to: apps.rule)
        return Response(status: .noContent)
    }

    // MARK: Audit

    @Sendable func audit(_ request: Request, _ context: ServerContext) async throws -> Response {
        let format = try request.answerFormat
        let before = try request.uri.count("before", max: .max)
        let filter = try request.uri.auditFilter
        let max = try request.uri.count("limit", max: Self.auditEntriesPerAnswerMax)
        let entries = try await readers.run { [service] in
            try service.audit(
                before: before.map(Int64.init), filter, max: max ?? Self.auditEntriesPerAnswer)
        }
        return Response(WireAuditTrail(entries), format)
    }

    // MARK: Addresses

    /// - Throws: ``StorageError/noSuchAccount``, also for text that cannot be a name.
    private static func account(_ context: ServerContext) throws -> AccountName {
        guard let name = AccountName(try context.parameters.text("name")) else {
            throw StorageError.noSuchAccount
        }
        return name
    }

    private static func device(_ context: ServerContext) throws -> DeviceID {
        guard let id = DeviceID(try context.parameters.text("id")) else {
            throw StorageError.noSuchDevice
        }
        return id
    }

    private static func accountName(_ text: String) throws(Problem) -> AccountName {
        guard let name = AccountName(text) else {
            throw .malformed("\"name\": \(AccountName.rule).")
        }
        return name
    }
}
