// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The operator service: everything that an operator may do. Accounts are identified by name.
/// Blocks.
///
/// Every call that names an account may throw ``StorageError/noSuchAccount``.
struct OperatorService: Sendable {
    let storage: any ServerStorage
    let settings: ServerSettings
    /// The operator, with the credential or through the data folder.
    var actor: AuditActor

    private var now: Int64 { settings.clock.now() }

    // MARK: Accounts

    /// - Throws: ``StorageError/accountExists``, ``StorageError/tooMany(_:)``.
    /// The address of the server for devices; nil if the port is not known beforehand.
    var address: String? { settings.port == 0 ? nil : settings.address(port: settings.port) }

    func createAccount(
        _ name: AccountName, codeSeconds: Int64? = nil
    ) throws(StorageError) -> Invitation {
        let account = Account(id: .random(), name: name, createdMilliseconds: now)
        try storage.createAccount(account, accountsMax: settings.accountsMax, by: actor)
        return try invite(to: account, CredentialTerms(), codeSeconds)
    }

    /// - Parameter codeSeconds: How long the code is valid; nil means as long as the settings say.
    func newCode(
        _ name: AccountName, _ terms: CredentialTerms, codeSeconds: Int64? = nil
    ) throws(StorageError) -> Invitation {
        try invite(to: account(name), terms, codeSeconds)
    }

    private func invite(
        to account: Account, _ terms: CredentialTerms, _ codeSeconds: Int64?
    ) throws(StorageError) -> Invitation {
        try storage.invite(
            to: account, terms, seconds: codeSeconds ?? settings.signInCodeSeconds, now: now,
            by: actor)
    }

    /// The accounts after this name, or all for nil, in the byte order of their names, which contain
    /// `part`.
    func accounts(
        after name: AccountName?, containing part: String? = nil, max: Int
    ) throws(StorageError) -> [AccountSummary] {
        var summaries: [AccountSummary] = []
        for account in try storage.accounts(after: name, containing: part, max: max) {
            let devices = try storage.devices(of: account.id)
            summaries.append(AccountSummary(account: account, devices: devices))
        }
        return summaries
    }

    /// - Throws: ``StorageError/accountExists``.
    func rename(_ name: AccountName, to newName: AccountName) throws(StorageError) -> Account {
        var account = try account(name)
        try storage.rename(account.id, to: newName, now: now, by: actor)
        account.name = newName
        return account
    }

    func limits(of name: AccountName) throws(StorageError) -> AccountLimits {
        try account(name).limits
    }

    func limit(_ name: AccountName, to limits: AccountLimits) throws(StorageError) -> AccountID {
        let id = try account(name).id
        try storage.limit(id, to: limits, now: now, by: actor)
        return id
    }

    func erase(_ name: AccountName) throws(StorageError) -> AccountID {
        let id = try account(name).id
        guard try storage.erase(id, now: now, by: actor) else { throw .noSuchAccount }
        return id
    }

    func stores(of name: AccountName) throws(StorageError) -> [StoreSummary] {
        try storage.stores(of: account(name).id)
    }

    private func account(_ name: AccountName) throws(StorageError) -> Account {
        guard let account = try storage.account(named: name) else { throw .noSuchAccount }
        return account
    }

    // MARK: Devices

    func devices(of name: AccountName) throws(StorageError) -> [Device] {
        try storage.devices(of: account(name).id)
    }

    /// - Throws: ``StorageError/noSuchDevice``.
    func rename(
        _ id: DeviceID, of name: AccountName, displayName: String
    ) throws(StorageError) -> Device {
        let device = DeviceReference(account: try account(name).id, id: id)
        let isThere = try storage.rename(
            device, displayName: DeviceDisplayName.fit(displayName) ?? DeviceDisplayName.unnamed,
            now: now, by: actor)
        let renamed = try storage.devices(of: device.account).first { $0.reference == device }
        guard isThere, let renamed else { throw .noSuchDevice }
        return renamed
    }

    /// - Throws: ``StorageError/noSuchDevice``.
    func revoke(_ id: DeviceID, of name: AccountName) throws(StorageError) -> DeviceReference {
        let device = DeviceReference(account: try account(name).id, id: id)
        guard try storage.revoke(device, now: now, by: actor) else { throw .noSuchDevice }
        return device
    }

    // MARK: Apps and the audit log

    func apps() throws(StorageError) -> [RegisteredApp] { try storage.apps() }

    /// - Returns: Whether it was not registered before.
    /// - Throws: ``StorageError/tooMany(_:)``.
    func register(_ identifier: StoreIdentifier) throws(StorageError) -> Bool {
        let app = RegisteredApp(identifier: identifier, registered: now)
        return try storage.register(app, appsMax: settings.appsMax, by: actor)
    }

    /// - Throws: ``StorageError/noSuchApp``.
    func removeApp(_ identifier: StoreIdentifier) throws(StorageError) {
        guard try storage.removeApp(identifier, now: now, by: actor) else { throw .noSuchApp }
    }

    func audit(
        before number: Int64?, _ filter: AuditFilter, max: Int
    ) throws(StorageError) -> [AuditEntry] {
        try storage.auditEntries(before: number, filter, max: max)
    }
}

/// The information that a person needs to sign in on a new device.
struct Invitation: Hashable, Sendable {
    var account: Account
    /// The code to type on the device. Valid once, and not stored anywhere.
    var code: String
    /// Milliseconds since 1970.
    var expiresMilliseconds: Int64
}

extension ServerStorage {
    /// Makes a code that is valid for some seconds. Throws as ``addCode(_:now:by:)``.
    func invite(
        to account: Account, _ terms: CredentialTerms, seconds: Int64, now: Int64,
        by actor: AuditActor
    ) throws(StorageError) -> Invitation {
        let code = SignInCode.random()
        let new = NewCode(
            hash: code.hash, account: account.id, expiresMilliseconds: now + seconds * 1_000,
            terms: terms)
        try addCode(new, now: now, by: actor)
        return Invitation(
            account: account, code: code.text, expiresMilliseconds: new.expiresMilliseconds)
    }
}
