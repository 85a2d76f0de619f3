// SPDX-License-Identifier: Apache-2.0

internal import NIOHTTP1
package import UbiquityCore
internal import UbiquityWire

/// A person's requests about their own account and devices. All throw ``LinkFailure``.
package enum AccountClient {
    /// A code with which one device can sign in once.
    package struct SignInCode: Hashable, Sendable, Codable {
        /// The account's identifier.
        package var account: String
        package var code: String
        /// Milliseconds since 1970, by the server's clock.
        package var expiresMilliseconds: Int64
    }

    /// Exchanges a proof for a credential of this device's own.
    package static func signIn(
        server: String, by proof: SignInProof, deviceName: String,
        security: ConnectionSecurity = ConnectionSecurity()
    ) async throws(LinkFailure) -> SignedInAccount {
        let address = try ServerAddress(server, security)
        var body = WireSignIn()
        var token: String?
        switch proof {
        case .code(let code): body.code = code
        case .token(let text): token = text
        }
        body.deviceName = deviceName
        let answer = try await ServerRequest(
            address: address, method: .POST, url: address.url("sign-in"), credential: token,
            body: WireFormat.protobuf.encode(body)
        ).answer(WireSignInAnswer.self) { $0 }
        guard DeviceID(answer.device) != nil, !answer.credential.isEmpty, !answer.account.isEmpty
        else {
            throw LinkFailure(.unreachable, "what answers at \(address) is no Ubiquity server")
        }
        return SignedInAccount(
            server: address.text, account: answer.account, accountName: answer.accountName,
            device: answer.device, deviceName: deviceName, credential: answer.credential,
            certificates: security.certificates)
    }

    /// Asks the server to revoke this device's credential.
    package static func signOut(_ account: SignedInAccount) async throws(LinkFailure) {
        try await revoke(device: account.device, account)
    }

    /// The account's devices, the oldest first.
    package static func devices(
        _ account: SignedInAccount
    ) async throws(LinkFailure) -> [ServerDevice] {
        try await request(.GET, account, "devices").devices()
    }

    package static func rename(
        device: String, to name: String, _ account: SignedInAccount
    ) async throws(LinkFailure) -> ServerDevice {
        var request = try request(.PATCH, account, "devices", device)
        var body = WireRename()
        body.name = name
        request.body = WireFormat.protobuf.encode(body)
        return try await request.answer(WireDevice.self) { ServerDevice($0) }
    }

    /// Asks the server to revoke a device's credential.
    package static func revoke(
        device: String, _ account: SignedInAccount
    ) async throws(LinkFailure) {
        try await request(.DELETE, account, "devices", device).done()
    }

    /// Removes the account, with all devices and stores, from the server.
    package static func erase(_ account: SignedInAccount) async throws(LinkFailure) {
        try await request(.DELETE, account, "account").done()
    }

    static func request(
        _ method: HTTPMethod, _ account: SignedInAccount, _ first: String, _ second: String? = nil
    ) throws(LinkFailure) -> ServerRequest {
        let address = try ServerAddress(account.server, certificates: account.certificates)
        let url = second.map { address.url(first, $0) } ?? address.url(first)
        return ServerRequest(
            address: address, method: method, url: url, credential: account.credential)
    }
}

extension AccountClient.SignInCode {
    init(_ wire: WireNewAccountAnswer) {
        self.init(
            account: wire.account, code: wire.code,
            expiresMilliseconds: Int64(clamping: wire.expiresMilliseconds))
    }
}
