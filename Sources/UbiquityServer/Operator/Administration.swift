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
        let accountName = try check(name)
        do { return try service.createAccount(accountName) } catch {
            throw AdministrationError(error, name: name)
        }
    }

    /// Makes another code, for another device.
    package func newCode(
        accountName name: String, terms: CredentialTerms = CredentialTerms()
    ) throws(AdministrationError) -> Invitation {
        let accountName = try check(name)
        do { return try service.newCode(accountName, terms) } catch {
            throw AdministrationError(error, name: name)
        }
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
        let accountName = try check(name)
        do { _ = try service.erase(accountName) } catch {
            throw AdministrationError(error, name: name)
        }
        do {
            try storage.scrub(pacedAt: nil)
            return true
        } catch { return false }
    }

    // MARK: Devices

    /// The signed-in devices of an account, the oldest first.
    package func devices(accountName name: String) throws(AdministrationError) -> [Device] {
        let accountName = try check(name)
        do { return try service.devices(of: accountName) } catch {
            throw AdministrationError(error, name: name)
        }
    }

    package func rename(
        _ device: DeviceID, accountName name: String, displayName: String
    ) throws(AdministrationError) -> Device {
        let accountName = try check(name)
        do { return try service.rename(device, of: accountName, displayName: displayName) } catch {
            throw AdministrationError(error, name: name)
        }
    }

    /// Signs a device out for good. A running server notices within a second.
    package func revoke(
        _ device: DeviceID, accountName name: String
    ) throws(AdministrationError) {
        let accountName = try check(name)
        do { _ = try service.revoke(device, of: accountName) } catch {
            throw AdministrationError(error, name: name)
        }
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

    private func check(_ name: String) throws(AdministrationError) -> AccountName {
        guard let name = AccountName(name) else { throw .nameInvalid(name) }
        return name
    }
}
