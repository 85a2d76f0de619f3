// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import UbiquityCore
internal import UbiquityWire

/// The operator's requests.
struct OperatorRoutes: Sendable {
    let storage: any ServerStorage
    let writer: BlockingThreads
    let readers: BlockingThreads
    var gate: Gate
    let revocation: Revocation
    let firstRun: FirstRun
    let settings: ServerSettings

    private static let accountsPerAnswerMax = 1_000
    private static let auditEntriesPerAnswerMax = 1_000
    private static let auditEntriesPerAnswer = 100

    private var now: Int64 { settings.clock.now() }
    private var actor: AuditActor { gate.operatorActor }
    /// The address of the server for devices; nil if the port is not known beforehand.
    private var address: String? {
        settings.port == 0 ? nil : settings.address(port: settings.port)
    }

    // MARK: Accounts

    @Sendable func listAccounts(
        _ request: Request, _ context: ServerContext
    ) async throws -> Response {
        let format = try request.answerFormat
        let after = try request.uri.queryParameters["after"].map { try Self.accountName("\($0)") }
        let part = try request.uri.part(bytesMax: AccountName.bytesMax)
        let max = try request.uri.count("limit", max: Self.accountsPerAnswerMax)
        var list = WireAccountList()
        list.accounts = try await readers.run { [storage] in
            let accounts = try storage.accounts(
                after: after, containing: part, max: max ?? Self.accountsPerAnswerMax)
            return try accounts.map { WireAccount($0, try storage.devices(of: $0.id)) }
        }
        return Response(list, format)
    }

    @Sendable func create(_ request: Request, _ context: ServerContext) async throws -> Response {
        let format = try request.answerFormat
        let message = try await request.readMessage(WireNewAccount.self)
        let accountName = try Self.accountName(message.name)
        let seconds = try codeSeconds(message.codeSeconds)
        let invitation = try await writer.run { [self] in
            let account = Account(id: .random(), name: accountName, createdMilliseconds: now)
            try storage.createAccount(account, accountsMax: settings.accountsMax, by: actor)
            return try storage.invite(
                to: account, CredentialTerms(), seconds: seconds, now: now, by: actor)
        }
        firstRun.end()
        return Response(WireNewAccountAnswer(invitation, server: address), format)
    }

    @Sendable func rename(_ request: Request, _ context: ServerContext) async throws -> Response {
        let format = try request.answerFormat
        let name = try context.parameters.accountName()
        let newName = try Self.accountName(try await request.readMessage(WireRename.self).name)
        let (account, devices) = try await writer.run { [self] in
            var account = try storage.existingAccount(name)
            try storage.rename(account.id, to: newName, now: now, by: actor)
            account.name = newName
            return (account, try storage.devices(of: account.id))
        }
        return Response(WireAccount(account, devices), format)
    }

    @Sendable func readLimits(
        _ request: Request, _ context: ServerContext
    ) async throws -> Response {
        let format = try request.answerFormat
        let name = try context.parameters.accountName()
        let limits = try await readers.run { [storage] in
            try storage.existingAccount(name).limits
        }
        return Response(WireAccountLimits(limits), format)
    }

    @Sendable func limit(_ request: Request, _ context: ServerContext) async throws -> Response {
        let format = try request.answerFormat
        let name = try context.parameters.accountName()
        let message = try await request.readMessage(WireAccountLimits.self)
        let limits: AccountLimits
        do { limits = try AccountLimits(message) } catch { throw Problem.malformed("\(error).") }
        let account = try await writer.run { [self] in
            let account = try storage.existingAccount(name)
            try storage.limit(account.id, to: limits, now: now, by: actor)
            return account.id
        }
        revocation.accountChanged(account)
        return Response(WireAccountLimits(limits), format)
    }

    @Sendable func erase(_ request: Request, _ context: ServerContext) async throws -> Response {
        let name = try context.parameters.accountName()
        let account = try await writer.run { [self] in
            let account = try storage.existingAccount(name)
            guard try storage.erase(account.id, now: now, by: actor) else {
                throw StorageError.noSuchAccount
            }
            return account.id
        }
        revocation.accountChanged(account)
        return Response(status: .noContent)
    }

    /// Lists the stores that an erasure would remove.
    @Sendable func listStores(
        _ request: Request, _ context: ServerContext
    ) async throws -> Response {
        let format = try request.answerFormat
        let name = try context.parameters.accountName()
        var list = WireStoreList()
        list.stores = try await readers.run { [storage] in
            try storage.stores(of: storage.existingAccount(name).id)
        }.map(WireStoreList.Store.init)
        return Response(list, format)
    }

    @Sendable func newCode(_ request: Request, _ context: ServerContext) async throws -> Response {
        let format = try request.answerFormat
        let name = try context.parameters.accountName()
        let message = try await request.readMessage(orNone: WireNewCode.self)
        let terms = try CredentialTerms(message.stores, seconds: message.credentialSeconds)
        let seconds = try codeSeconds(message.codeSeconds)
        let invitation = try await writer.run { [self] in
            try storage.invite(
                to: storage.existingAccount(name), terms, seconds: seconds, now: now, by: actor)
        }
        return Response(WireNewAccountAnswer(invitation, server: address), format)
    }

    private func codeSeconds(_ asked: UInt64) throws(Problem) -> Int64 {
        try settings.codeSeconds(asked, max: PairingRule.codeSecondsMax, of: "a code")
    }

    // MARK: Devices

    @Sendable func listDevices(
        _ request: Request, _ context: ServerContext
    ) async throws -> Response {
        let format = try request.answerFormat
        let name = try context.parameters.accountName()
        let devices = try await readers.run { [storage] in
            try storage.devices(of: storage.existingAccount(name).id)
        }
        return Response(WireDeviceList(devices), format)
    }

    @Sendable func renameDevice(
        _ request: Request, _ context: ServerContext
    ) async throws -> Response {
        let format = try request.answerFormat
        let name = try context.parameters.accountName()
        let id = try context.parameters.deviceID()
        let displayName = try await request.readTitle()
        let renamed = try await writer.run { [self] in
            let device = DeviceReference(account: try storage.existingAccount(name).id, id: id)
            _ = try storage.rename(device, displayName: displayName, now: now, by: actor)
            return try storage.existingDevice(device)
        }
        return Response(WireDevice(renamed), format)
    }

    @Sendable func revokeDevice(
        _ request: Request, _ context: ServerContext
    ) async throws -> Response {
        let name = try context.parameters.accountName()
        let id = try context.parameters.deviceID()
        let revoked = try await writer.run { [self] in
            let device = DeviceReference(account: try storage.existingAccount(name).id, id: id)
            return try storage.revoke(device, now: now, by: actor)
        }
        guard !revoked.isEmpty else { throw StorageError.noSuchDevice }
        revocation.revoked(revoked)
        return Response(status: .noContent)
    }

    // MARK: Apps

    @Sendable func listApps(_ request: Request, _ context: ServerContext) async throws -> Response {
        let format = try request.answerFormat
        let registered = try await readers.run { [storage] in try storage.apps() }
        return Response(WireAppList(registered, settings.apps), format)
    }

    @Sendable func register(_ request: Request, _ context: ServerContext) async throws -> Response {
        let identifier = try context.parameters.storeIdentifier()
        try await writer.run { [self] in
            let app = RegisteredApp(identifier: identifier, registered: now)
            _ = try storage.register(app, appsMax: settings.appsMax, by: actor)
            try gate.apps.reload()
        }
        return Response(status: .noContent)
    }

    @Sendable func removeApp(_ request: Request, _ context: ServerContext) async throws -> Response
    {
        let identifier = try context.parameters.storeIdentifier()
        try await writer.run { [self] in
            guard try storage.removeApp(identifier, now: now, by: actor) else {
                throw StorageError.noSuchApp
            }
            try gate.apps.reload()
        }
        revocation.restricted(to: gate.apps.rule)
        return Response(status: .noContent)
    }

    // MARK: Audit

    @Sendable func audit(_ request: Request, _ context: ServerContext) async throws -> Response {
        let format = try request.answerFormat
        let before = try request.uri.count("before", max: .max)
        let filter = try request.uri.auditFilter
        let max = try request.uri.count("limit", max: Self.auditEntriesPerAnswerMax)
        let entries = try await readers.run { [storage] in
            try storage.auditEntries(
                before: before.map(Int64.init), filter, max: max ?? Self.auditEntriesPerAnswer)
        }
        return Response(WireAuditTrail(entries), format)
    }

    private static func accountName(_ text: String) throws(Problem) -> AccountName {
        guard let name = AccountName(text) else {
            throw .malformed("\"name\": \(AccountName.rule).")
        }
        return name
    }
}
