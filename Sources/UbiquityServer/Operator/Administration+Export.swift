// SPDX-License-Identifier: Apache-2.0

extension Administration {
    /// Exports an account's values and devices as an archive, to be read piece by piece.
    /// - Throws: ``AdministrationError``.
    package func export(accountName name: String) throws(AdministrationError) -> AccountExport {
        guard let accountName = AccountName(name) else { throw .nameInvalid(name) }
        do throws(StorageError) {
            return try AccountExport(
                of: service.exportable(accountName), storage: storage, now: ServerClock.system.now()
            )
        } catch { throw AdministrationError(error, name: name) }
    }
}
