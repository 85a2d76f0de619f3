// SPDX-License-Identifier: Apache-2.0

/// The account that this device is signed in to, and the folder of each account's values.
package struct DeviceState: Hashable, Sendable {
    /// Nil while signed out.
    package var signedIn: SignedInAccount?
    /// The folder in use.
    @Exact package var folder = "1"
    /// The folder of each account that ever signed in here, by account identifier.
    package var folders: [ExactString: ExactString] = [:]
    /// The greatest folder number ever used; nil if there is only the first folder.
    package var lastFolder: Int?
    /// The keys of each sealed account that ever signed in here, by account identifier.
    package var keyrings: [ExactString: Keyring] = [:]
    /// The keys of accounts with a new one of this device's whose mark the server may not have yet, or
    /// with which not all stores are sealed, by account identifier. See ``SealingStep``.
    package var proposals: [ExactString: Keyring] = [:]
    /// The accounts that this device knows to be sealed, by identifier, whether or not it has their keys.
    /// It sends no clear value of theirs, whatever a server says later: only a person takes one out, see
    /// ``SealingSession/unseal()``. A wipe leaves them, see ``hadSealed``.
    package var sealedAccounts: Set<ExactString> = []

    package init() {}

    /// The existing folders to be removed: their number was given out, but no account has them and
    /// the device does not use them. An interrupted wipe left them behind.
    ///
    /// Empty if, according to the file, only the first folder was ever used: the file may have been
    /// lost, and the folders may be all that is left. Names that are not folder numbers are not
    /// ours.
    package func abandonedFolders(among names: [String]) -> [String] {
        guard let lastFolder, lastFolder > 0 else { return [] }
        let used = Set(folders.values).union([ExactString(folder)])
        return names.filter { name in
            guard let number = Int(name), ExactString(name) == "\(number)" else { return false }
            return (1...lastFolder).contains(number) && !used.contains(ExactString(name))
        }
    }

    /// Whether all folder names are of the form that this library makes. They become parts of paths
    /// and are removed with everything in them.
    package var hasFolders: Bool {
        (folders.values.map { $0.string } + [folder]).allSatisfy { name in
            (1...64).contains(name.utf8.count) && name.utf8.allSatisfy { $0.isAlphanumeric }
        }
    }
}

extension DeviceState {
    /// Signs in. The first account ever takes over the values written before it. A returning
    /// account finds its values again, unsent ones included. A new account starts with a folder of
    /// its own and never sees the others' values.
    /// - Parameter isSealed: Whether the account is said to be sealed. If not, it stays as it was known.
    package mutating func signIn(_ account: SignedInAccount, isSealed: Bool = false) {
        let identifier = ExactString(account.account)
        if let known = folders[identifier] {
            folder = known.string
        } else if isOwned(folder) {
            folder = takeUnusedFolder()
        }
        folders[identifier] = ExactString(folder)
        signedIn = account
        if isSealed { sealedAccounts.insert(identifier) }
    }

    /// Whether an account has the folder.
    package func isOwned(_ folder: String) -> Bool { folders.values.contains(ExactString(folder)) }

    /// Signs out. The values stay readable and writable, and new writes stay with the account that
    /// was last signed in.
    /// - Returns: The account that was signed in.
    @discardableResult
    package mutating func signOut() -> SignedInAccount? {
        defer { signedIn = nil }
        return signedIn
    }

    /// Signs out and moves to an empty folder. The account's folder has no owner any more and is to
    /// be removed; its keys are gone. Does nothing if nobody is signed in.
    /// - Returns: The account that was signed in.
    package mutating func signOutWiping() -> SignedInAccount? {
        guard let account = signOut() else { return nil }
        let wiped = ExactString(folder)
        folder = takeUnusedFolder()
        folders = folders.filter { $0.value != wiped }
        keyrings = keyrings.filter { folders[$0.key] != nil }
        proposals = proposals.filter { folders[$0.key] != nil }
        return account
    }

    /// A number that no folder ever had: a process that does not know of a wipe yet must not write
    /// into a folder that another account gets. The count starts again only if the file claims an
    /// impossible number of accounts.
    private mutating func takeUnusedFolder() -> String {
        let used = Set(folders.values).union([ExactString(folder)])
        let greatest = max(used.compactMap { Int($0.string) }.max() ?? 0, lastFolder ?? 0)
        var number = (0..<Self.folderNumberMax).contains(greatest) ? greatest + 1 : 1
        while used.contains("\(number)") { number += 1 }
        lastFolder = number
        return "\(number)"
    }

    private static let folderNumberMax = 1_000_000
}

extension DeviceState {
    /// The keys of the account that this device is signed in to. Nil if the account is not sealed, or
    /// if this device has no key for it yet.
    package var keyring: Keyring? {
        signedIn.flatMap { keyrings[ExactString($0.account)] }
    }

    /// The keys that this device has proposed for the account that it is signed in to.
    package var proposal: Keyring? {
        get { signedIn.flatMap { proposals[ExactString($0.account)] } }
        set { if let signedIn { proposals[ExactString(signedIn.account)] = newValue } }
    }

    /// What this device knows of the keys of the account that it is signed in to; nil if nobody is signed
    /// in. What is put back for another account changes nothing.
    package var sealing: SealingSession? {
        get {
            signedIn.map { account in
                SealingSession(
                    account: account.account, keyring: keyring, proposal: proposal,
                    isSealed: isSealed)
            }
        }
        set {
            guard let newValue else { return }
            let account = ExactString(newValue.account)
            guard signedIn.map({ ExactString($0.account) }) == account else { return }
            (keyrings[account], proposals[account]) = (newValue.keyring, newValue.proposal)
            if newValue.isSealed {
                sealedAccounts.insert(account)
            } else {
                sealedAccounts.remove(account)
            }
        }
    }

    /// Joins keys from outside with those that this device has of the account that it is signed in to.
    /// Does nothing if nobody is signed in. A proposal stays: ``SealingStep`` says when it ends.
    /// - Throws: ``KeyringRefusal/unrelated``, see ``Keyring/joined(with:)``; nothing is changed.
    package mutating func keep(_ keyring: Keyring) throws(KeyringRefusal) {
        guard var session = sealing else { return }
        try session.join(keyring)
        sealing = session
    }

    /// Whether this device has ever had a sealed account.
    package var hadSealed: Bool { !sealedAccounts.isEmpty }

    /// Whether the account that this device is signed in to is known to be sealed.
    package var isSealed: Bool {
        signedIn.map { sealedAccounts.contains(ExactString($0.account)) } ?? false
    }
}

/// The account that a device is signed in to, and the device's credential.
package struct SignedInAccount: Hashable, Sendable {
    /// The server's address, such as `https://ubiquity.example`.
    @Exact package var server: String
    /// The account's identifier, which its server drew at random.
    @Exact package var account: String
    @Exact package var accountName: String
    /// 16 hexadecimal digits.
    @Exact package var device: String
    @Exact package var deviceName: String
    @Exact package var credential: String
    /// The only certificates accepted for the server, in PEM; nil means the system's.
    @Exact package var certificates: String?
    /// The only public key accepted, of a server that was signed in to by a link with it. Nil means
    /// any.
    @Exact package var pin: String?

    package init(
        server: String, account: String, accountName: String, device: String, deviceName: String,
        credential: String, certificates: String? = nil, pin: String? = nil
    ) {
        self.server = server
        self.account = account
        self.accountName = accountName
        self.device = device
        self.deviceName = deviceName
        self.credential = credential
        self.certificates = certificates
        self.pin = pin
    }
}

extension DeviceState {
    /// The fields of its file.
    package var fields: PropertyListValue {
        .fields([
            "signedIn": signedIn?.fields,
            "folder": .string(folder),
            "folders": .dictionary(folders.mapValues { .string($0) }),
            "lastFolder": lastFolder.map { .integer(Int64($0)) },
            "keyrings": Self.fields(keyrings), "proposals": Self.fields(proposals),
            "sealedAccounts": sealedAccounts.isEmpty
                ? nil : .array(sealedAccounts.sorted().map { .string($0) }),
        ])
    }

    /// Reads the state from the fields of its file.
    /// - Throws: ``StoredFieldError``.
    package init(fields value: PropertyListValue) throws(StoredFieldError) {
        let fields = try StoredFields(value)
        signedIn = try fields.fields("signedIn").map(SignedInAccount.init)
        folder = try fields.text("folder")
        folders = try StoredFields.need(fields.fields("folders"), "folders").strings()
        lastFolder = try fields.integer("lastFolder")
        keyrings = try Self.keyrings(fields, "keyrings")
        proposals = try Self.keyrings(fields, "proposals")
        for account in try fields.array("sealedAccounts") ?? [] {
            guard case .string(let account) = account else { throw .otherType("sealedAccounts") }
            sealedAccounts.insert(account)
        }
    }

    private static func fields(_ keyrings: [ExactString: Keyring]) -> PropertyListValue? {
        keyrings.isEmpty ? nil : .dictionary(keyrings.mapValues { $0.fields })
    }

    private static func keyrings(
        _ fields: StoredFields, _ name: ExactString
    ) throws(StoredFieldError) -> [ExactString: Keyring] {
        var keyrings: [ExactString: Keyring] = [:]
        guard let value = fields[name] else { return keyrings }
        guard case .dictionary(let accounts) = value else { throw .otherType(name.string) }
        for (account, fields) in accounts { keyrings[account] = try Keyring(fields: fields) }
        return keyrings
    }
}

extension SignedInAccount {
    fileprivate var fields: PropertyListValue {
        .fields([
            "server": .string(server), "account": .string(account),
            "accountName": .string(accountName), "device": .string(device),
            "deviceName": .string(deviceName), "credential": .string(credential),
            "certificates": certificates.map { .string($0) }, "pin": pin.map { .string($0) },
        ])
    }

    fileprivate init(_ fields: StoredFields) throws(StoredFieldError) {
        self.init(
            server: try fields.text("server"), account: try fields.text("account"),
            accountName: try fields.text("accountName"), device: try fields.text("device"),
            deviceName: try fields.text("deviceName"), credential: try fields.text("credential"),
            certificates: try fields.string("certificates"), pin: try fields.string("pin"))
    }
}
