// SPDX-License-Identifier: Apache-2.0

internal import NIOHTTP1
package import UbiquityCore
internal import UbiquityWire

/// The requests about accounts and devices, each by itself. All throw ``LinkFailure``.
package enum AccountClient {
    /// A code by which one device can sign in once.
    package struct SignInCode: Hashable, Sendable, Codable {
        /// The account's identifier.
        package var account: String
        package var code: String
        /// Milliseconds since 1970, by the server's clock.
        package var expiresMilliseconds: Int64
    }

    /// Exchanges a code for a credential of this device's own. A code works once.
    package static func signIn(
        server: String, code: String, deviceName: String,
        security: ConnectionSecurity = ConnectionSecurity()
    ) async throws(LinkFailure) -> SignedInAccount {
        let address = try ServerAddress(server, security)
        var body = WireSignIn()
        body.code = code
        body.deviceName = deviceName
        let answer = try await ServerRequest(
            address: address, method: .POST, url: address.url("sign-in"),
            body: WireFormat.protobuf.encode(body)
        ).answer { bytes throws(WireError) in
            try WireFormat.protobuf.decode(WireSignInAnswer.self, from: bytes)
        }
        guard DeviceID(answer.device) != nil, !answer.credential.isEmpty, !answer.account.isEmpty
        else {
            throw LinkFailure(.unreachable, "what answers at \(address) is no Ubiquity server")
        }
        return SignedInAccount(
            server: address.text, account: answer.account, accountName: answer.accountName,
            device: answer.device, deviceName: deviceName, credential: answer.credential,
            certificates: security.certificates)
    }

    /// Has the server forget this device's credential.
    package static func signOut(_ account: SignedInAccount) async throws(LinkFailure) {
        let address = try ServerAddress(
            account.server, certificates: account.certificates)
        _ = try await ServerRequest(
            address: address, method: .DELETE, url: address.url("devices", account.device),
            credential: account.credential
        ).answer { bytes throws(WireError) in bytes }
    }

    /// Makes an account. The operator's.
    package static func createAccount(
        server: String, operatorCredential: String, name: String,
        security: ConnectionSecurity = ConnectionSecurity()
    ) async throws(LinkFailure) -> SignInCode {
        let address = try ServerAddress(server, security)
        var body = WireNewAccount()
        body.name = name
        return try await ServerRequest(
            address: address, method: .POST, url: address.url("accounts"),
            credential: operatorCredential, body: WireFormat.protobuf.encode(body)
        ).answer(SignInCode.decode)
    }

    /// A code for one more device of an account. The operator's.
    package static func newCode(
        server: String, operatorCredential: String, accountName: String,
        security: ConnectionSecurity = ConnectionSecurity()
    ) async throws(LinkFailure) -> SignInCode {
        let address = try ServerAddress(server, security)
        return try await ServerRequest(
            address: address, method: .POST,
            url: address.url("accounts", accountName, "codes"), credential: operatorCredential
        ).answer(SignInCode.decode)
    }
}

extension AccountClient.SignInCode {
    fileprivate static func decode(_ bytes: [UInt8]) throws(WireError) -> Self {
        let wire = try WireFormat.protobuf.decode(WireNewAccountAnswer.self, from: bytes)
        return Self(
            account: wire.account, code: wire.code,
            expiresMilliseconds: Int64(clamping: wire.expiresMilliseconds))
    }
}
