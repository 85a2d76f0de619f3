// SPDX-License-Identifier: Apache-2.0

internal import NIOHTTP1
package import UbiquityCore
internal import UbiquityWire

/// The operator's requests, with the operator's credential. All throw ``LinkFailure``.
package struct OperatorClient: Sendable {
    private let address: ServerAddress
    private let credential: String

    private static let accountsMax = 10_000_000

    package init(
        server: String, credential: String, security: ConnectionSecurity = ConnectionSecurity()
    ) throws(LinkFailure) {
        address = try ServerAddress(server, security)
        self.credential = credential
    }

    // MARK: Accounts

    package func createAccount(
        name: String
    ) async throws(LinkFailure) -> AccountClient.SignInCode {
        var body = WireNewAccount()
        body.name = name
        return try await request(
            .POST, address.url("accounts"), WireFormat.protobuf.encode(body)
        ).answer(WireNewAccountAnswer.self) { AccountClient.SignInCode($0) }
    }

    /// Makes a code for another device of an account.
    /// - Parameters:
    ///   - stores: The stores to which the device is confined; empty if it is not.
    ///   - credentialSeconds: How long its credential is valid; nil means until it is revoked.
    package func newCode(
        accountName: String, stores: [String] = [], credentialSeconds: Int64? = nil
    ) async throws(LinkFailure) -> AccountClient.SignInCode {
        var body = WireNewCode()
        body.stores = stores
        body.credentialSeconds = UInt64(clamping: credentialSeconds ?? 0)
        return try await request(
            .POST, address.url("accounts", accountName, "codes"),
            WireFormat.protobuf.encode(body)
        ).answer(WireNewAccountAnswer.self) { AccountClient.SignInCode($0) }
    }

    /// All accounts, sorted by name. The server decides how many it lists at a time.
    package func accounts() async throws(LinkFailure) -> [ServerAccount] {
        var accounts: [ServerAccount] = []
        while true {
            let query = accounts.last.map { (name: "after", value: $0.name) }
            let page = try await list(address.url("accounts", query: query))
                .answer(WireAccountList.self, .list) { $0.accounts.map(ServerAccount.init) }
            // A server that starts over would never come to an end.
            let isFurther = accounts.last.map { last in page.allSatisfy { $0.name > last.name } }
            guard !page.isEmpty, isFurther ?? true, accounts.count < Self.accountsMax
            else { return accounts }
            accounts += page
        }
    }

    package func rename(
        accountName: String, to name: String
    ) async throws(LinkFailure) -> ServerAccount {
        let body = Self.rename(to: name)
        return try await request(.PATCH, address.url("accounts", accountName), body)
            .answer(WireAccount.self) { ServerAccount($0) }
    }

    /// Removes the account and everything that belongs to it from the server.
    package func erase(accountName: String) async throws(LinkFailure) {
        try await request(.DELETE, address.url("accounts", accountName)).done()
    }

    /// The same as ``AccountClient/export(of:take:)``, for any account.
    package func export(
        accountName: String, take: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws {
        try await request(.GET, address.url("accounts", accountName, "export")).archive(take: take)
    }

    // MARK: Devices

    /// The oldest first.
    package func devices(accountName: String) async throws(LinkFailure) -> [ServerDevice] {
        try await request(.GET, address.url("accounts", accountName, "devices")).devices()
    }

    package func rename(
        device: String, accountName: String, to name: String
    ) async throws(LinkFailure) -> ServerDevice {
        let body = Self.rename(to: name)
        return try await request(
            .PATCH, address.url("accounts", accountName, "devices", device), body
        ).answer(WireDevice.self) { ServerDevice($0) }
    }

    package func revoke(device: String, accountName: String) async throws(LinkFailure) {
        try await request(.DELETE, address.url("accounts", accountName, "devices", device)).done()
    }

    // MARK: Apps

    package func apps() async throws(LinkFailure) -> ServerApps {
        try await list(address.url("apps")).answer(WireAppList.self, .list) { ServerApps($0) }
    }

    package func register(app: String) async throws(LinkFailure) {
        try await request(.PUT, address.url("apps", app)).done()
    }

    package func remove(app: String) async throws(LinkFailure) {
        try await request(.DELETE, address.url("apps", app)).done()
    }

    // MARK: Audit

    /// The newest first.
    package func audit(max: Int) async throws(LinkFailure) -> [ServerAuditEntry] {
        var entries: [ServerAuditEntry] = []
        while entries.count < max {
            let page = try await auditPage(before: entries.last?.number)
            entries += page
            if page.isEmpty { break }
        }
        return Array(entries.prefix(max))
    }

    private func auditPage(before number: Int64?) async throws(LinkFailure) -> [ServerAuditEntry] {
        let query = number.map { (name: "before", value: "\($0)") }
        return try await list(address.url("audit", query: query))
            .answer(WireAuditTrail.self, .list) { $0.entries.map(ServerAuditEntry.init) }
    }

    private func list(_ url: String) -> ServerRequest {
        var request = request(.GET, url)
        request.bounds = .list
        return request
    }

    private static func rename(to name: String) -> [UInt8] {
        var body = WireRename()
        body.name = name
        return WireFormat.protobuf.encode(body)
    }

    private func request(
        _ method: HTTPMethod, _ url: String, _ body: [UInt8]? = nil
    ) -> ServerRequest {
        ServerRequest(
            address: address, method: method, url: url, credential: credential, body: body)
    }
}
