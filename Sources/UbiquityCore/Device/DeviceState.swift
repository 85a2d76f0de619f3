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
    /// The addresses of servers at which this device has had a sealed account, with its key or without.
    /// A sign-in there to an account that is not sealed has to be said: a server could make the device
    /// send values in clear.
    package var sealedServers: Set<ExactString> = []

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
    package mutating func signIn(_ account: SignedInAccount) {
        if let known = folders[ExactString(account.account)] {
            folder = known.string
        } else if isOwned(folder) {
            folder = takeUnusedFolder()
        }
        folders[ExactString(account.account)] = ExactString(folder)
        signedIn = account
        if account.isSealed { sealedServers.insert(ExactString(account.server)) }
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

    /// Joins keys from outside with those that this device has of the account that it is signed in to.
    /// Does nothing if nobody is signed in. A proposal stays: ``SealingStep`` says when it ends.
    /// - Throws: ``KeyringRefusal/unrelated``, see ``Keyring/joined(with:)``; nothing is changed.
    package mutating func keep(_ keyring: Keyring) throws(KeyringRefusal) {
        guard let signedIn else { return }
        let account = ExactString(signedIn.account)
        keyrings[account] = try keyrings[account]?.joined(with: keyring) ?? keyring
        sealedServers.insert(ExactString(signedIn.server))
    }

    /// Takes the proposal as the account's keys. It stays one, see ``SealingStep``.
    package mutating func adoptProposal() {
        guard let signedIn, let proposal else { return }
        let account = ExactString(signedIn.account)
        // This device has made it from its keys, so it only lacks what has come since.
        keyrings[account] = (try? keyrings[account]?.joined(with: proposal)) ?? proposal
        sealedServers.insert(ExactString(signedIn.server))
    }

    /// Whether a sign-in to an account that is not sealed has to be said: the device has had one at
    /// this server that is.
    package func isUnsealedSignIn(_ account: SignedInAccount) -> Bool {
        keyrings[ExactString(account.account)] == nil
            && sealedServers.contains(ExactString(account.server))
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
    /// Whether the server said at the sign-in that the account is sealed. This device never sends it
    /// clear values then, whatever the server says later: without the account's key, it is locked.
    package var isSealed = false

    package init(
        server: String, account: String, accountName: String, device: String, deviceName: String,
        credential: String, certificates: String? = nil, pin: String? = nil,
        isSealed: Bool = false
    ) {
        self.server = server
        self.account = account
        self.accountName = accountName
        self.device = device
        self.deviceName = deviceName
        self.credential = credential
        self.certificates = certificates
        self.pin = pin
        self.isSealed = isSealed
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
            "sealedServers": sealedServers.isEmpty
                ? nil : .array(sealedServers.sorted().map { .string($0) }),
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
        for server in try fields.array("sealedServers") ?? [] {
            guard case .string(let server) = server else { throw .otherType("sealedServers") }
            sealedServers.insert(server)
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
            "isSealed": isSealed ? .boolean(true) : nil,
        ])
    }

    fileprivate init(_ fields: StoredFields) throws(StoredFieldError) {
        self.init(
            server: try fields.text("server"), account: try fields.text("account"),
            accountName: try fields.text("accountName"), device: try fields.text("device"),
            deviceName: try fields.text("deviceName"), credential: try fields.text("credential"),
            certificates: try fields.string("certificates"), pin: try fields.string("pin"),
            isSealed: try fields.boolean("isSealed") ?? false)
    }
}
