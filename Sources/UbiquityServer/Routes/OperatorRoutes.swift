// SPDX-License-Identifier: Apache-2.0

internal import NIOHTTP1
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
    /// Nil if devices do not see it.
    let tls: TLSIdentity?
    let settings: ServerSettings

    private static let accountsPerAnswerMax = 1_000
    private static let auditEntriesPerAnswerMax = 1_000
    private static let auditEntriesPerAnswer = 100

    private var now: Int64 { settings.clock.now() }
    private var actor: AuditActor { gate.operatorActor }

    // MARK: Accounts

    @Sendable func listAccounts(
        _ exchange: Exchange
    ) async throws -> Answer {
        let format = try exchange.answerFormat
        let after = try exchange.request.query.text("after").map { try Self.accountName($0) }
        let part = try exchange.request.query.part(bytesMax: AccountName.bytesMax)
        let max = try exchange.request.query.count("limit", max: Self.accountsPerAnswerMax)
        var list = WireAccountList()
        list.accounts = try await readers.run { [storage] in
            let accounts = try storage.accounts(
                after: after, containing: part, max: max ?? Self.accountsPerAnswerMax)
            return try accounts.map { WireAccount($0, try storage.devices(of: $0.id)) }
        }
        return Answer(list, format)
    }

    @Sendable func create(_ exchange: Exchange) async throws -> Answer {
        let format = try exchange.answerFormat
        let message = try await exchange.readMessage(WireNewAccount.self)
        let accountName = try Self.accountName(message.name)
        let seconds = try codeSeconds(message.codeSeconds)
        let invitation = try await writer.run { [self] in
            let account = Account(id: .random(), name: accountName, createdMilliseconds: now)
            try storage.createAccount(account, accountsMax: settings.accountsMax, by: actor)
            return try storage.invite(
                to: account, CredentialTerms(), seconds: seconds, now: now, by: actor)
        }
        firstRun.end()
        return Answer(
            WireNewAccountAnswer(invitation, server: settings.reachedAddress, pin: tls?.pin), format
        )
    }

    @Sendable func rename(_ exchange: Exchange) async throws -> Answer {
        let format = try exchange.answerFormat
        let name = try exchange.accountName()
        let newName = try Self.accountName(try await exchange.readMessage(WireRename.self).name)
        let (account, devices) = try await writer.run { [self] in
            var account = try storage.existingAccount(name)
            try storage.rename(account.id, to: newName, now: now, by: actor)
            account.name = newName
            return (account, try storage.devices(of: account.id))
        }
        return Answer(WireAccount(account, devices), format)
    }

    @Sendable func readLimits(
        _ exchange: Exchange
    ) async throws -> Answer {
        let format = try exchange.answerFormat
        let name = try exchange.accountName()
        let limits = try await readers.run { [storage] in
            try storage.existingAccount(name).limits
        }
        return Answer(WireAccountLimits(limits), format)
    }

    @Sendable func limit(_ exchange: Exchange) async throws -> Answer {
        let format = try exchange.answerFormat
        let name = try exchange.accountName()
        let message = try await exchange.readMessage(WireAccountLimits.self)
        let limits: AccountLimits
        do { limits = try AccountLimits(message) } catch { throw Problem.malformed("\(error).") }
        let account = try await writer.run { [self] in
            let account = try storage.existingAccount(name)
            try storage.limit(account.id, to: limits, now: now, by: actor)
            return account.id
        }
        revocation.accountChanged(account)
        return Answer(WireAccountLimits(limits), format)
    }

    @Sendable func erase(_ exchange: Exchange) async throws -> Answer {
        let name = try exchange.accountName()
        let account = try await writer.run { [self] in
            let account = try storage.existingAccount(name)
            guard try storage.erase(account.id, now: now, by: actor) else {
                throw StorageError.noSuchAccount
            }
            return account.id
        }
        revocation.accountChanged(account)
        return Answer(.noContent)
    }

    /// Resets a sealed account, at once.
    @Sendable func reset(_ exchange: Exchange) async throws -> Answer {
        let name = try exchange.accountName()
        let account = try await writer.run { [self] in
            let account = try storage.existingAccount(name)
            _ = try storage.reset(account.id, proof: nil, now: now, run: nil, by: actor)
            return account.id
        }
        revocation.accountChanged(account)
        return Answer(.noContent)
    }

    /// Lists the stores that an erasure would remove.
    @Sendable func listStores(
        _ exchange: Exchange
    ) async throws -> Answer {
        let format = try exchange.answerFormat
        let name = try exchange.accountName()
        var list = WireStoreList()
        list.stores = try await readers.run { [storage] in
            try storage.stores(of: storage.existingAccount(name).id)
        }.map(WireStoreList.Store.init)
        return Answer(list, format)
    }

    @Sendable func newCode(_ exchange: Exchange) async throws -> Answer {
        let format = try exchange.answerFormat
        let name = try exchange.accountName()
        let message = try await exchange.readMessage(orNone: WireNewCode.self)
        let terms = try CredentialTerms(message.stores, seconds: message.credentialSeconds)
        let seconds = try codeSeconds(message.codeSeconds)
        let invitation = try await writer.run { [self] in
            try storage.invite(
                to: storage.existingAccount(name), terms, seconds: seconds, now: now, by: actor)
        }
        return Answer(
            WireNewAccountAnswer(invitation, server: settings.reachedAddress, pin: tls?.pin), format
        )
    }

    private func codeSeconds(_ asked: UInt64) throws(Problem) -> Int64 {
        try settings.codeSeconds(asked, max: PairingRule.codeSecondsMax, of: "a code")
    }

    // MARK: Devices

    @Sendable func listDevices(
        _ exchange: Exchange
    ) async throws -> Answer {
        let format = try exchange.answerFormat
        let name = try exchange.accountName()
        let devices = try await readers.run { [storage] in
            try storage.devices(of: storage.existingAccount(name).id)
        }
        return Answer(WireDeviceList(devices), format)
    }

    @Sendable func renameDevice(
        _ exchange: Exchange
    ) async throws -> Answer {
        let format = try exchange.answerFormat
        let name = try exchange.accountName()
        let id = try exchange.deviceID()
        let displayName = try await exchange.readTitle()
        let renamed = try await writer.run { [self] in
            let device = DeviceReference(account: try storage.existingAccount(name).id, id: id)
            _ = try storage.rename(device, displayName: displayName, now: now, by: actor)
            return try storage.existingDevice(device)
        }
        return Answer(WireDevice(renamed), format)
    }

    @Sendable func revokeDevice(
        _ exchange: Exchange
    ) async throws -> Answer {
        let name = try exchange.accountName()
        let id = try exchange.deviceID()
        let revoked = try await writer.run { [self] in
            let device = DeviceReference(account: try storage.existingAccount(name).id, id: id)
            return try storage.revoke(device, now: now, by: actor)
        }
        guard !revoked.isEmpty else { throw StorageError.noSuchDevice }
        revocation.revoked(revoked)
        return Answer(.noContent)
    }

    // MARK: Apps

    @Sendable func listApps(_ exchange: Exchange) async throws -> Answer {
        let format = try exchange.answerFormat
        let registered = try await readers.run { [storage] in try storage.apps() }
        return Answer(WireAppList(registered, settings.apps), format)
    }

    @Sendable func register(_ exchange: Exchange) async throws -> Answer {
        let identifier = try exchange.storeIdentifier()
        let name = try await exchange.readMessage(orNone: WireRename.self).name
        guard name.isEmpty || AccountName(name) != nil else {
            throw Problem.malformed("\"name\": the name of an app \(AccountName.form).")
        }
        try await writer.run { [self] in
            let app = RegisteredApp(
                identifier: identifier, name: name.isEmpty ? nil : name, registered: now)
            _ = try storage.register(app, appsMax: ServerConstants.appsMax, by: actor)
            try gate.apps.reload()
        }
        return Answer(.noContent)
    }

    @Sendable func removeApp(_ exchange: Exchange) async throws -> Answer {
        let identifier = try exchange.storeIdentifier()
        try await writer.run { [self] in
            guard try storage.removeApp(identifier, now: now, by: actor) else {
                throw StorageError.noSuchApp
            }
            try gate.apps.reload()
        }
        revocation.restricted(to: gate.apps.rule)
        return Answer(.noContent)
    }

    // MARK: Audit

    @Sendable func audit(_ exchange: Exchange) async throws -> Answer {
        let format = try exchange.answerFormat
        let before = try exchange.request.query.count("before", max: .max)
        let filter = try exchange.request.query.auditFilter
        let max = try exchange.request.query.count("limit", max: Self.auditEntriesPerAnswerMax)
        let entries = try await readers.run { [storage] in
            try storage.auditEntries(
                before: before.map(Int64.init), filter, max: max ?? Self.auditEntriesPerAnswer)
        }
        return Answer(WireAuditTrail(entries), format)
    }

    private static func accountName(_ text: String) throws(Problem) -> AccountName {
        guard let name = AccountName(text) else {
            throw .malformed("\"name\": \(AccountName.rule).")
        }
        return name
    }
}
