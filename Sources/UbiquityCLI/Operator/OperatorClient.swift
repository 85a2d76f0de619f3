// SPDX-License-Identifier: Apache-2.0

import Ubiquity
import UbiquityCore
import UbiquityServer
import UbiquityWire

/// The operator's requests to a running server, with the operator's credential or through the socket of
/// its data folder. All throw ``LinkFailure``.
struct OperatorClient: Sendable {
    private let address: ServerAddress
    /// Nil on a socket, which is authority enough.
    private let credential: String?
    /// Held, because its path is valid as long as it exists.
    private let socket: FolderSocket?

    private static let accountsMax = 10_000_000

    init(
        server: String, credential: String, security: ConnectionSecurity = ConnectionSecurity()
    ) throws(LinkFailure) {
        address = try ServerAddress(server, security)
        (self.credential, socket) = (credential, nil)
    }

    init(_ socket: FolderSocket) {
        address = ServerAddress(socket: socket.path, displayPath: socket.displayPath)
        (credential, self.socket) = (nil, socket)
    }

    // MARK: Accounts

    /// - Parameter codeSeconds: How long the code is valid; nil means as long as the server says.
    func createAccount(
        name: String, codeSeconds: Int64? = nil
    ) async throws(LinkFailure) -> DeviceCode {
        var body = WireNewAccount()
        body.name = name
        body.codeSeconds = UInt64(clamping: codeSeconds ?? 0)
        return try await request(.post, ["accounts"], body: WireFormat.protobuf.encode(body))
            .answer(WireNewAccountAnswer.self) { DeviceCode($0) }
    }

    /// Makes a code for another device of an account.
    /// - Parameters:
    ///   - stores: The stores to which the device is confined; empty if it is not.
    ///   - credentialSeconds: How long its credential is valid; nil means until it is revoked.
    ///   - codeSeconds: How long the code is valid; nil means as long as the server says.
    func newCode(
        accountName: String, stores: [String] = [], credentialSeconds: Int64? = nil,
        codeSeconds: Int64? = nil
    ) async throws(LinkFailure) -> DeviceCode {
        var body = WireNewCode()
        body.stores = stores
        body.credentialSeconds = UInt64(clamping: credentialSeconds ?? 0)
        body.codeSeconds = UInt64(clamping: codeSeconds ?? 0)
        return try await request(
            .post, ["accounts", accountName, "codes"], body: WireFormat.protobuf.encode(body)
        ).answer(WireNewAccountAnswer.self) { DeviceCode($0) }
    }

    /// All accounts, sorted by name. The server decides how many it lists at a time.
    func accounts() async throws(LinkFailure) -> [WireAccount] {
        var accounts: [WireAccount] = []
        while accounts.count < Self.accountsMax {
            let last = accounts.last?.name
            let query = last.map { [(name: "after", value: $0)] } ?? []
            let page = try await request(.get, ["accounts"], query: query)
                .answer(WireAccountList.self, isList: true) { $0.accounts }
            // A server that starts over would never come to an end. It sorts by bytes.
            let isFurther = page.allSatisfy { account in
                last?.utf8.lexicographicallyPrecedes(account.name.utf8) ?? true
            }
            guard !page.isEmpty, isFurther else { break }
            accounts += page
        }
        return accounts
    }

    func rename(accountName: String, to name: String) async throws(LinkFailure) {
        try await request(.patch, ["accounts", accountName], body: Self.rename(to: name)).done()
    }

    func limits(accountName: String) async throws(LinkFailure) -> AccountLimits {
        try await request(.get, ["accounts", accountName, "limits"])
            .answer(WireAccountLimits.self) { AccountLimits(ofServer: $0) }
    }

    /// Sets all of the account's own limits.
    func limit(accountName: String, to limits: AccountLimits) async throws(LinkFailure) {
        _ = try await request(
            .put, ["accounts", accountName, "limits"],
            body: WireFormat.protobuf.encode(WireAccountLimits(limits))
        ).answer(WireAccountLimits.self) { $0 }
    }

    // MARK: Apps

    /// The registered apps, and whether the server accepts no others.
    func apps() async throws(LinkFailure) -> WireAppList {
        try await request(.get, ["apps"]).answer(WireAppList.self, isList: true) { $0 }
    }

    func register(_ app: StoreIdentifier, name: String?) async throws(LinkFailure) {
        try await request(.put, ["apps", app.string], body: name.map(Self.rename)).done()
    }

    func remove(_ app: StoreIdentifier) async throws(LinkFailure) {
        try await request(.delete, ["apps", app.string]).done()
    }

    /// The authority that a server of a local network made; nil if the server is no such one.
    func house() async throws(LinkFailure) -> WireConfig.House? {
        try await request(.get, ["config"]).answer(WireConfig.self) { $0.hasHouse ? $0.house : nil }
    }

    // MARK: Audit

    /// The newest first.
    func audit(max: Int) async throws(LinkFailure) -> [WireAuditTrail.Entry] {
        var entries: [WireAuditTrail.Entry] = []
        while entries.count < max {
            let page = try await auditPage(before: entries.last?.number)
            entries += page
            if page.isEmpty { break }
        }
        return Array(entries.prefix(max))
    }

    private func auditPage(
        before number: UInt64?
    ) async throws(LinkFailure) -> [WireAuditTrail.Entry] {
        let query = number.map { [(name: "before", value: "\($0)")] } ?? []
        return try await request(.get, ["audit"], query: query)
            .answer(WireAuditTrail.self, isList: true) { $0.entries }
    }

    static func rename(to name: String) -> [UInt8] {
        var body = WireRename()
        body.name = name
        return WireFormat.protobuf.encode(body)
    }

    func request(
        _ method: ServerRequest.Method, _ path: [String],
        query: [(name: String, value: String)] = [], body: [UInt8]? = nil
    ) -> ServerRequest {
        ServerRequest(method, path, query: query, at: address, credential: credential, body: body)
    }
}

extension AccountLimits {
    /// The limits in a server's answer. There are none if a newer server allows one that is out of
    /// this program's range.
    init(ofServer wire: WireAccountLimits) {
        self = (try? AccountLimits(wire)) ?? AccountLimits()
    }
}

/// The subject of an operator's command, for the sentence about a refusal.
enum OperatorSubject {
    case server
    case account(String, newName: String? = nil)
    case device(account: String)
    /// A sign-in request, with the name of the account it is for.
    case signInRequest(account: String)
    case app(StoreIdentifier)
}

extension Failure {
    init(_ failure: LinkFailure, about subject: OperatorSubject) {
        switch (failure.code.flatMap(ProblemCode.init), subject) {
        case (.accountExists, .account(let name, let newName)):
            self.init(
                .no,
                "the account \"\(newName ?? name)\" already exists; `ubiquity account code "
                    + "\(Phrase.word(newName ?? name))` makes a code for another device of it")
        case (.notFound, .account(let name, _)):
            self.init(.no, "there is no account \"\(name)\"")
        case (.notFound, .device(let account)):
            self.init(
                .no,
                "the account \"\(account)\" has no such device; `ubiquity device list --account "
                    + "\(account)` shows its devices")
        case (.notFound, .signInRequest(let account)):
            self.init(
                .no,
                "no device is waiting with this code, or there is no account \"\(account)\"")
        case (.notFound, .app(let app)): self.init(.no, "the app \(app) is not registered")
        case (.malformed, _): self.init(.badInput, failure.detail)
        case (.tooMany, _), (.storageFull, _): self.init(.inputOutput, failure.detail)
        default: self.init(UbiquityError(failure))
        }
    }
}
