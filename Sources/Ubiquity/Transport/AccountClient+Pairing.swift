// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore
package import UbiquityWire

/// Requests that sign in further devices, and sign out others.
extension AccountClient {
    /// Makes a code for a further device, with at most the rights of this one.
    /// - Parameters:
    ///   - stores: The stores to which the device is confined; empty for those of this device.
    ///   - credentialSeconds: How long its credential is valid; nil for as long as possible.
    package static func makeCode(
        stores: [String] = [], credentialSeconds: Int64? = nil, _ account: SignedInAccount
    ) async throws(LinkFailure) -> DeviceCode {
        var body = WireNewCode()
        body.stores = stores
        body.credentialSeconds = UInt64(clamping: credentialSeconds ?? 0)
        var code = try await ServerRequest(
            .post, ["codes"], of: account, body: WireFormat.protobuf.encode(body)
        ).answer(WireNewAccountAnswer.self) { DeviceCode($0) }
        // The server is on this machine, and what it says came over no network.
        if PlainHTTPRule.obstacle(at: account.server) == .onlyThisMachine, let server = code.server,
            PlainHTTPRule.obstacle(at: server) == nil
        {
            if let pin = code.pin { _ = try SignInLink.parts(of: ";\(pin)") }
            return code
        }
        code.server = nil
        // Where the system's certificates do, they do for the new device too, and for other keys.
        let pin = account.certificates == nil ? nil : code.pin
        code.pin = if let own = account.pin { own } else { await checked(pin, account) }
        return code
    }

    /// The key that a server says it has, if it has it and this device trusts its certificate.
    private static func checked(_ pin: String?, _ account: SignedInAccount) async -> String? {
        guard let pin, (try? SignInLink.parts(of: ";\(pin)")) != nil else { return nil }
        var account = account
        account.pin = pin
        return (try? await checkCredential(of: account)).map { pin }
    }

    /// Asks a server to sign this device in once the request is approved.
    package static func requestSignIn(
        server: String, deviceName: String, stores: [String] = [], credentialSeconds: Int64? = nil,
        security: ConnectionSecurity = ConnectionSecurity()
    ) async throws(LinkFailure) -> PendingSignIn {
        let address = try ServerAddress(server, security)
        var body = WireNewSignInRequest()
        body.deviceName = deviceName
        body.stores = stores
        body.credentialSeconds = UInt64(clamping: credentialSeconds ?? 0)
        let answer = try await ServerRequest(
            .post, ["sign-in-requests"], at: address, body: WireFormat.protobuf.encode(body)
        ).answer(WireNewSignInRequestAnswer.self) { $0 }
        guard !answer.request.isEmpty, !answer.userCode.isEmpty else {
            throw .noUbiquityServer(address)
        }
        return PendingSignIn(
            server: address.text, deviceName: deviceName, security: security,
            secret: answer.request, userCode: answer.userCode,
            expiresMilliseconds: Int64(clamping: answer.expiresMilliseconds),
            intervalMilliseconds: 1_000 * min(max(Int64(clamping: answer.intervalSeconds), 1), 60))
    }

    /// The device that shows a user code.
    package static func signInRequest(
        userCode: String, _ account: SignedInAccount
    ) async throws(LinkFailure) -> ServerSignInRequest {
        try await ServerRequest(.get, ["sign-in-requests", userCode], of: account).signInRequest()
    }

    /// Lets a device sign in to this device's account, with at most the rights of this one.
    /// - Parameters: As for ``makeCode(stores:credentialSeconds:_:)``.
    package static func approve(
        userCode: String, stores: [String] = [], credentialSeconds: Int64? = nil,
        _ account: SignedInAccount
    ) async throws(LinkFailure) {
        try await ServerRequest(
            .post, ["sign-in-requests", userCode, "approval"], of: account,
            body: ServerSignInRequest.approval(stores, credentialSeconds)
        ).done()
    }

    package static func deny(
        userCode: String, _ account: SignedInAccount
    ) async throws(LinkFailure) {
        try await ServerRequest(.delete, ["sign-in-requests", userCode], of: account).done()
    }

    /// Signs out all other devices of the account, also those that sign in meanwhile.
    /// - Returns: The devices that were signed out.
    package static func signOutOthers(
        _ account: SignedInAccount
    ) async throws(LinkFailure) -> [ServerDevice] {
        var revoked: [ServerDevice] = []
        for _ in 0..<signOutRoundsMax {
            let others = try await devices(account).filter { $0.id != account.device }
            guard !others.isEmpty else { break }
            for device in others {
                do throws(LinkFailure) { try await revoke(device: device.id, account) } catch {
                    // It has signed itself out.
                    guard error.code == ProblemCode.notFound.rawValue else { throw error }
                }
            }
            revoked += others
        }
        return revoked
    }

    /// A device can only sign in others until it is signed out itself.
    private static let signOutRoundsMax = 10
}

/// A code with which one device can sign in once.
package struct DeviceCode: Hashable, Sendable {
    package var code: String
    package var expiresMilliseconds: Int64
    /// The address of the server for the device; nil if it does not say, or the device that made the
    /// code has an address that does.
    package var server: String?
    /// The pin of the server's key, if its certificate alone proves nothing.
    package var pin: String?
    /// The other addresses of a server with such a key.
    package var others: [String]

    private static let othersMax = 16

    package init(_ wire: WireNewAccountAnswer) {
        code = wire.code
        pin = wire.pin.isEmpty ? nil : wire.pin
        others = Array(wire.others.prefix(Self.othersMax))
        server = wire.server.isEmpty ? nil : wire.server
        expiresMilliseconds = Int64(clamping: wire.expiresMilliseconds)
    }
}

/// A device that waits for an approval, as an approver sees it. Its name and address are its own
/// claims.
package struct ServerSignInRequest: Hashable, Sendable {
    package var deviceName: String
    package var address: String
    /// The stores that it asks for; empty for all.
    package var stores: [String]
    /// Nil for until it is revoked.
    package var credentialSeconds: Int64?
    package var expiresMilliseconds: Int64

    package init(_ wire: WireSignInRequest) {
        deviceName = wire.deviceName
        address = wire.address
        stores = wire.stores
        credentialSeconds =
            wire.credentialSeconds == 0 ? nil : Int64(clamping: wire.credentialSeconds)
        expiresMilliseconds = Int64(clamping: wire.expiresMilliseconds)
    }

    /// The body of an approval.
    /// - Parameter account: The name of the account, if the operator approves.
    package static func approval(
        _ stores: [String], _ credentialSeconds: Int64?, account: String = ""
    ) -> [UInt8] {
        var body = WireApproval()
        body.stores = stores
        body.credentialSeconds = UInt64(clamping: credentialSeconds ?? 0)
        body.account = account
        return WireFormat.protobuf.encode(body)
    }
}

/// A sign-in that waits for approval.
package struct PendingSignIn: Hashable, Sendable {
    package var server: String
    package var deviceName: String
    var security: ConnectionSecurity
    var secret: String
    /// The code to type on a device that is signed in.
    package var userCode: String
    package var expiresMilliseconds: Int64
    var intervalMilliseconds: Int64

    package var link: SignInLink { SignInLink(server: server, code: userCode) }

    /// Waits for the decision.
    /// - Throws: ``LinkFailure`` if the sign-in was denied, or the request has expired;
    ///   `CancellationError`.
    func account() async throws -> SignedInAccount {
        let end = ContinuousClock.now + .milliseconds(PairingRule.requestMilliseconds)
        while true {
            do throws(LinkFailure) {
                return try await AccountClient.signIn(
                    server: server, by: .request(secret), deviceName: deviceName,
                    security: security)
            } catch {
                guard let pause = pause(after: error), ContinuousClock.now < end else {
                    throw error
                }
                try await Task.sleep(for: .milliseconds(pause))
            }
        }
    }

    /// The pause before the next attempt, in milliseconds; nil if none can succeed.
    func pause(after failure: LinkFailure) -> Int64? {
        if failure.code == ProblemCode.signInPending.rawValue { return intervalMilliseconds }
        return switch failure.kind {
        case .busy(let milliseconds): max(milliseconds, intervalMilliseconds)
        case .unreachable, .timedOut: intervalMilliseconds
        default: nil
        }
    }
}

extension ServerRequest {
    /// Sends a request for a device that waits for an approval.
    package func signInRequest() async throws(LinkFailure) -> ServerSignInRequest {
        try await answer(WireSignInRequest.self) { ServerSignInRequest($0) }
    }
}
