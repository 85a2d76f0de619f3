// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore
package import UbiquityWire

/// A person's requests about their own account and devices. All throw ``LinkFailure``.
package enum AccountClient {
    /// Exchanges a proof for a credential of this device's own.
    package static func signIn(
        server: String, by proof: SignInProof, deviceName: String,
        security: ConnectionSecurity = ConnectionSecurity()
    ) async throws(LinkFailure) -> SignedInAccount {
        var body = WireSignIn()
        var (token, pin): (String?, String?) = (nil, nil)
        switch proof {
        case .code(let code): (body.code, pin) = try SignInLink.parts(of: code)
        case .request(let secret): body.request = secret
        case .token(let text): token = text
        }
        body.deviceName = deviceName
        let address = try ServerAddress(server, security, pin: pin)
        let answer = try await ServerRequest(
            .post, ["sign-in"], at: address, credential: token,
            body: WireFormat.protobuf.encode(body)
        ).answer(WireSignInAnswer.self) { $0 }
        guard DeviceID(answer.device) != nil, !answer.credential.isEmpty, !answer.account.isEmpty
        else {
            throw .noUbiquityServer(address)
        }
        return SignedInAccount(
            server: address.text, account: answer.account, accountName: answer.accountName,
            device: answer.device, deviceName: deviceName, credential: answer.credential,
            certificates: security.certificates, pin: pin)
    }

    /// Asks the server to revoke this device's credential.
    package static func signOut(_ account: SignedInAccount) async throws(LinkFailure) {
        try await revoke(device: account.device, account)
    }

    /// The account's devices, the oldest first.
    package static func devices(
        _ account: SignedInAccount
    ) async throws(LinkFailure) -> [ServerDevice] {
        try await ServerRequest(.get, ["devices"], of: account).devices()
    }

    /// This device, as the server knows it.
    package static func ownDevice(
        _ account: SignedInAccount
    ) async throws(LinkFailure) -> ServerDevice {
        try await ServerRequest(.get, ["devices", account.device], of: account)
            .answer(WireDevice.self) { ServerDevice($0) }
    }

    package static func rename(
        device: String, to name: String, _ account: SignedInAccount
    ) async throws(LinkFailure) -> ServerDevice {
        var body = WireRename()
        body.name = name
        return try await ServerRequest(
            .patch, ["devices", device], of: account, body: WireFormat.protobuf.encode(body)
        ).answer(WireDevice.self) { ServerDevice($0) }
    }

    /// Asks the server to revoke a device's credential.
    package static func revoke(
        device: String, _ account: SignedInAccount
    ) async throws(LinkFailure) {
        try await ServerRequest(.delete, ["devices", device], of: account).done()
    }

    /// The account's stores on the server, or those that a confined device may use.
    package static func stores(
        _ account: SignedInAccount
    ) async throws(LinkFailure) -> [ServerStore] {
        try await ServerRequest(.get, ["stores"], of: account).stores()
    }

    /// Checks whether the server still accepts this device's credential.
    package static func checkCredential(of account: SignedInAccount) async throws(LinkFailure) {
        try await ServerRequest(.get, ["account"], of: account).done()
    }

    /// The configuration that the account's server publishes.
    package static func config(
        of account: SignedInAccount
    ) async throws(LinkFailure) -> ServerConfig {
        try await config(at: ServerAddress(of: account))
    }

    /// The configuration that a server publishes.
    static func config(at address: ServerAddress) async throws(LinkFailure) -> ServerConfig {
        let config = try await ServerRequest(.get, ["config"], at: address)
            .answer(WireConfig.self) { ServerConfig($0) }
        // Any message can be decoded as one without required fields.
        guard config.serverMilliseconds > 0 else {
            throw .noUbiquityServer(address)
        }
        return config
    }
}

/// A person's proof to a server that an account is theirs.
package enum SignInProof: Hashable, Sendable {
    /// A code from the server operator or another device. It works once.
    case code(String)
    /// The secret of a request that somebody has approved. It works once.
    case request(String)
    /// A JSON Web Token from the identity provider that the server trusts, unchanged.
    case token(String)
}

/// A device as reported by its server. Times are the server's milliseconds since 1970.
package struct ServerDevice: Hashable, Sendable {
    /// 16 hexadecimal digits.
    package var id: String
    package var name: String
    package var createdMilliseconds: Int64
    package var seenMilliseconds: Int64
    /// Nil if its credential is valid until it is revoked.
    package var expiresMilliseconds: Int64?
    /// The stores to which it is confined, sorted; empty if it is not.
    package var stores: [String]
    /// By how much its clock was ahead of the server's, in milliseconds; nil if it has not said.
    package var clockAheadMilliseconds: Int64?
    /// The version of the client library that it last used; nil if it has not said.
    package var version: String?

    package init(_ wire: WireDevice) {
        id = wire.id
        name = wire.name
        createdMilliseconds = Int64(clamping: wire.createdMilliseconds)
        seenMilliseconds = Int64(clamping: wire.seenMilliseconds)
        expiresMilliseconds =
            wire.expiresMilliseconds == 0 ? nil : Int64(clamping: wire.expiresMilliseconds)
        stores = wire.stores
        clockAheadMilliseconds = wire.clockAhead
        version = wire.version.isEmpty ? nil : wire.version
    }
}

/// A store as reported by its server.
package struct ServerStore: Hashable, Sendable {
    package var identifier: String
    package var usage: Usage
    /// The name that its app was registered with.
    package var appName: String?

    package init(_ wire: WireStoreList.Store) {
        identifier = wire.identifier
        appName = wire.appName.isEmpty ? nil : wire.appName
        usage = Usage(bytes: Int(clamping: wire.bytes), keys: Int(clamping: wire.keys))
    }
}

extension ServerRequest {
    /// Sends a request for an account's stores.
    package func stores() async throws(LinkFailure) -> [ServerStore] {
        try await answer(WireStoreList.self, isList: true) { $0.stores.map(ServerStore.init) }
    }

    /// Sends a request for an account's devices.
    package func devices() async throws(LinkFailure) -> [ServerDevice] {
        try await answer(WireDeviceList.self, isList: true) { $0.devices.map(ServerDevice.init) }
    }
}
