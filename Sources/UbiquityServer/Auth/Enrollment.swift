// SPDX-License-Identifier: Apache-2.0

/// Makes accounts and the codes with which devices sign in to them. Used by the server and by
/// administration beside it; blocks.
struct Enrollment: Sendable {
    let storage: any ServerStorage
    let clock: ServerClock
    let accountsMax: Int
    let codeSeconds: Int64

    init(storage: any ServerStorage, settings: ServerSettings) {
        self.storage = storage
        clock = settings.clock
        accountsMax = settings.accountsMax
        codeSeconds = settings.signInCodeSeconds
    }

    /// - Throws: ``StorageError/accountExists``, ``StorageError/tooMany(_:)``.
    func createAccount(_ name: AccountName) throws(StorageError) -> Invitation {
        let account = Account(id: .random(), name: name, created: clock.now())
        try storage.createAccount(account, accountsMax: accountsMax)
        return try invite(to: account)
    }

    /// - Throws: ``StorageError/noSuchAccount``.
    func newCode(_ name: AccountName) throws(StorageError) -> Invitation {
        guard let account = try storage.account(named: name) else {
            throw StorageError.noSuchAccount
        }
        return try invite(to: account)
    }

    private func invite(to account: Account) throws(StorageError) -> Invitation {
        let code = SignInCode.random()
        let now = clock.now()
        let expires = now + codeSeconds * 1_000
        try storage.addCode(code.hash, for: account.id, expires: expires, now: now)
        return Invitation(account: account, code: code.text, expires: expires)
    }
}
