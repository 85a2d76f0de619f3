// SPDX-License-Identifier: Apache-2.0

/// Makes accounts and codes directly in a server's data folder, for whoever can read it. A server
/// may be running on it meanwhile. Blocks for the disk, at most some seconds.
package struct Administration: Sendable {
    let storage: any ServerStorage
    private let enrollment: Enrollment

    /// - Throws: ``ServerStartError``; ``ServerStartError/noServerData(path:)`` if no server ever
    ///   ran there.
    package init(dataFolder: String) throws(ServerStartError) {
        let folder = DataFolder(path: dataFolder)
        guard folder.hasServerData else { throw .noServerData(path: folder.path) }
        let storage = try SQLiteServerStorage.openForAdministration(folder.databasePath)
        self.storage = storage
        enrollment = Enrollment(
            storage: storage, settings: ServerSettings(dataFolder: dataFolder))
    }

    /// - Throws: ``AdministrationError``.
    package func createAccount(name: String) throws(AdministrationError) -> Invitation {
        let accountName = try check(name)
        do { return try enrollment.createAccount(accountName) } catch {
            throw AdministrationError(error, name: name)
        }
    }

    /// A further code, for a further device.
    /// - Throws: ``AdministrationError``.
    package func newCode(accountName name: String) throws(AdministrationError) -> Invitation {
        let accountName = try check(name)
        do { return try enrollment.newCode(accountName) } catch {
            throw AdministrationError(error, name: name)
        }
    }

    /// In the order of their names.
    /// - Throws: ``AdministrationError``.
    package func accounts() throws(AdministrationError) -> [Account] {
        do { return try storage.accounts() } catch { throw .storage(error) }
    }

    /// The devices of an account that are signed in, the oldest first.
    /// - Throws: ``AdministrationError``.
    package func devices(accountName name: String) throws(AdministrationError) -> [Device] {
        let accountName = try check(name)
        do throws(StorageError) {
            guard let account = try storage.account(named: accountName) else {
                throw StorageError.noSuchAccount
            }
            return try storage.devices(of: account.id)
        } catch { throw AdministrationError(error, name: name) }
    }

    /// Signs a device out, for good. A running server notices within two seconds.
    /// - Returns: Whether it was signed in.
    /// - Throws: ``AdministrationError``.
    package func revoke(_ device: DeviceName) throws(AdministrationError) -> Bool {
        do {
            return try storage.revoke(device, now: ServerClock.system.now())
        } catch { throw .storage(error) }
    }

    private func check(_ name: String) throws(AdministrationError) -> AccountName {
        guard let name = AccountName(name) else { throw .nameInvalid(name) }
        return name
    }
}
