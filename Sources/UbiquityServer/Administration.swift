// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// What an operator does directly in a server's data folder, for whoever can read it. A server may
/// be running on it meanwhile, and notices within a second. Blocks for the disk, at most some
/// seconds, and as long as writing the whole database takes where an account is erased and no server
/// runs.
///
/// Every call throws ``AdministrationError``.
package struct Administration: Sendable {
    let storage: any ServerStorage
    let desk: OperatorDesk

    /// - Parameter codeSeconds: How long a code that is made can be used; nil: as with a server by
    ///   default.
    /// - Throws: ``ServerStartError``; ``ServerStartError/noServerData(path:)`` if no server ever
    ///   ran there.
    package init(dataFolder: String, codeSeconds: Int64? = nil) throws(ServerStartError) {
        let folder = DataFolder(path: dataFolder)
        try folder.requireServerData()
        let storage = try SQLiteServerStorage.openForAdministration(folder.databasePath)
        self.storage = storage
        var settings = ServerSettings(dataFolder: dataFolder)
        if let codeSeconds { settings.signInCodeSeconds = codeSeconds }
        desk = OperatorDesk(storage: storage, settings: settings, actor: .operatorLocally)
    }

    // MARK: Accounts

    package func createAccount(name: String) throws(AdministrationError) -> Invitation {
        let accountName = try check(name)
        do { return try desk.createAccount(accountName) } catch {
            throw AdministrationError(error, name: name)
        }
    }

    /// A further code, for a further device.
    package func newCode(
        accountName name: String, terms: CredentialTerms = CredentialTerms()
    ) throws(AdministrationError) -> Invitation {
        let accountName = try check(name)
        do { return try desk.newCode(accountName, terms) } catch {
            throw AdministrationError(error, name: name)
        }
    }

    /// In the order of their names.
    package func accounts() throws(AdministrationError) -> [Account] {
        do { return try storage.accounts() } catch { throw .storage(error) }
    }

    /// With their devices, in the order of their names.
    package func accountSummaries() throws(AdministrationError) -> [AccountSummary] {
        do { return try desk.accounts(after: nil, max: .max) } catch { throw .storage(error) }
    }

    package func rename(
        accountName name: String, to newName: String
    ) throws(AdministrationError) -> Account {
        let (old, new) = (try check(name), try check(newName))
        do { return try desk.rename(old, to: new) } catch {
            throw AdministrationError(error, name: error == .accountExists ? newName : name)
        }
    }

    /// Removes the account with all that is its.
    /// - Returns: Whether nothing of it is in the database's files any more. False: another program
    ///   reads them, or there is no room to write them anew; a server does it as soon as it can.
    package func erase(accountName name: String) throws(AdministrationError) -> Bool {
        let accountName = try check(name)
        do { _ = try desk.erase(accountName) } catch {
            throw AdministrationError(error, name: name)
        }
        do {
            try storage.scrub(pacedAt: nil)
            return true
        } catch { return false }
    }

    // MARK: Devices

    /// The devices of an account that are signed in, the oldest first.
    package func devices(accountName name: String) throws(AdministrationError) -> [Device] {
        let accountName = try check(name)
        do { return try desk.devices(of: accountName) } catch {
            throw AdministrationError(error, name: name)
        }
    }

    package func rename(
        _ device: DeviceID, accountName name: String, title: String
    ) throws(AdministrationError) -> Device {
        let accountName = try check(name)
        do { return try desk.rename(device, of: accountName, title: title) } catch {
            throw AdministrationError(error, name: name)
        }
    }

    /// Signs a device out, for good. A running server notices within a second.
    package func revoke(
        _ device: DeviceID, accountName name: String
    ) throws(AdministrationError) {
        let accountName = try check(name)
        do { _ = try desk.revoke(device, of: accountName) } catch {
            throw AdministrationError(error, name: name)
        }
    }

    // MARK: Apps

    package func apps() throws(AdministrationError) -> [RegisteredApp] {
        do { return try desk.apps() } catch { throw .storage(error) }
    }

    /// - Returns: Whether it was not registered before.
    package func register(_ app: StoreIdentifier) throws(AdministrationError) -> Bool {
        do { return try desk.register(app) } catch { throw .storage(error) }
    }

    package func removeApp(_ app: StoreIdentifier) throws(AdministrationError) {
        do { try desk.removeApp(app) } catch {
            throw AdministrationError(error, name: app.string)
        }
    }

    // MARK: Audit

    /// The newest first.
    package func audit(max: Int) throws(AdministrationError) -> [AuditEntry] {
        do { return try desk.audit(before: nil, max: max) } catch { throw .storage(error) }
    }

    private func check(_ name: String) throws(AdministrationError) -> AccountName {
        guard let name = AccountName(name) else { throw .nameInvalid(name) }
        return name
    }
}
