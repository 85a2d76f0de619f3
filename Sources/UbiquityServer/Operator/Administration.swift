// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Operations of an operator directly in a server's data folder, for anyone who can read it. A
/// server may be running there and notices them within a second. Blocks for the disk: at most some
/// seconds, or, when an account is erased and no server is running, as long as it takes to rewrite
/// the whole database.
///
/// Every call throws ``AdministrationError``.
package struct Administration: Sendable {
    let storage: any ServerStorage
    let service: OperatorService

    /// - Parameter codeSeconds: How long new codes are valid; nil for a server's default.
    /// - Throws: ``ServerStartError``; ``ServerStartError/noServerData(path:)`` if no server ever
    ///   ran there.
    package init(dataFolder: String, codeSeconds: Int64? = nil) throws(ServerStartError) {
        let folder = DataFolder(path: dataFolder)
        try folder.requireServerData()
        let storage = try SQLiteServerStorage.openForAdministration(folder.databasePath)
        self.storage = storage
        var settings = ServerSettings(dataFolder: dataFolder)
        if let codeSeconds { settings.signInCodeSeconds = codeSeconds }
        service = OperatorService(storage: storage, settings: settings, actor: .operatorLocally)
    }

    // MARK: Accounts

    package func createAccount(name: String) throws(AdministrationError) -> Invitation {
        try on(name) { name throws(StorageError) in try service.createAccount(name) }
    }

    /// Makes another code, for another device.
    package func newCode(
        accountName name: String, terms: CredentialTerms = CredentialTerms()
    ) throws(AdministrationError) -> Invitation {
        try on(name) { name throws(StorageError) in try service.newCode(name, terms) }
    }

    /// Sorted by name.
    package func accounts() throws(AdministrationError) -> [Account] {
        do { return try storage.accounts() } catch { throw .storage(error) }
    }

    /// The accounts with their devices, sorted by name.
    package func accountSummaries() throws(AdministrationError) -> [AccountSummary] {
        do { return try service.accounts(after: nil, max: .max) } catch { throw .storage(error) }
    }

    package func rename(
        accountName name: String, to newName: String
    ) throws(AdministrationError) -> Account {
        let (old, new) = (try check(name), try check(newName))
        do { return try service.rename(old, to: new) } catch {
            throw AdministrationError(error, name: error == .accountExists ? newName : name)
        }
    }

    /// Removes the account with everything that belongs to it.
    /// - Returns: Whether the database's files are free of its data. If not, another program reads
    ///   them or there is no room to rewrite them; a server does so as soon as it can.
    package func erase(accountName name: String) throws(AdministrationError) -> Bool {
        _ = try on(name) { name throws(StorageError) in try service.erase(name) }
        do {
            try storage.scrub(pacedAt: nil)
            return true
        } catch { return false }
    }

    // MARK: Devices

    /// The signed-in devices of an account, the oldest first.
    package func devices(accountName name: String) throws(AdministrationError) -> [Device] {
        try on(name) { name throws(StorageError) in try service.devices(of: name) }
    }

    package func rename(
        _ device: DeviceID, accountName name: String, displayName: String
    ) throws(AdministrationError) -> Device {
        try on(name) { name throws(StorageError) in
            try service.rename(device, of: name, displayName: displayName)
        }
    }

    /// Signs a device out for good. A running server notices within a second.
    package func revoke(
        _ device: DeviceID, accountName name: String
    ) throws(AdministrationError) {
        _ = try on(name) { name throws(StorageError) in try service.revoke(device, of: name) }
    }

    // MARK: Apps

    package func apps() throws(AdministrationError) -> [RegisteredApp] {
        do { return try service.apps() } catch { throw .storage(error) }
    }

    /// - Returns: Whether it was not registered before.
    package func register(_ app: StoreIdentifier) throws(AdministrationError) -> Bool {
        do { return try service.register(app) } catch { throw .storage(error) }
    }

    package func removeApp(_ app: StoreIdentifier) throws(AdministrationError) {
        do { try service.removeApp(app) } catch {
            throw AdministrationError(error, name: app.string)
        }
    }

    // MARK: Audit

    /// The newest first.
    package func audit(max: Int) throws(AdministrationError) -> [AuditEntry] {
        do { return try service.audit(before: nil, max: max) } catch { throw .storage(error) }
    }

    private func on<Result>(
        _ name: String, _ operation: (AccountName) throws(StorageError) -> Result
    ) throws(AdministrationError) -> Result {
        let accountName = try check(name)
        do { return try operation(accountName) } catch {
            throw AdministrationError(error, name: name)
        }
    }

    private func check(_ name: String) throws(AdministrationError) -> AccountName {
        guard let name = AccountName(name) else { throw .nameInvalid(name) }
        return name
    }
}
