// SPDX-License-Identifier: Apache-2.0

import Ubiquity
import UbiquityCore
import UbiquityWire

/// Decides on devices that wait to sign in, as a person or as the operator.
extension DeviceManager {
    var accountName: String {
        switch self {
        case .person(let own): own.account.accountName
        case .operator(_, let account): account
        }
    }

    /// The code in what a person typed or scanned.
    /// - Throws: ``Failure`` for a link to another server.
    func userCode(in text: String) throws(Failure) -> String {
        guard let link = SignInLink(text) else { return text }
        if case .person(let own) = self, link.server != own.account.server {
            throw Failure(
                .badInput,
                "that device wants to sign in at \(link.server), and this one is signed in at "
                    + own.account.server)
        }
        return link.code
    }

    func signInRequest(_ userCode: String) async throws -> ServerSignInRequest {
        switch self {
        case .person(let own):
            do {
                return try await AccountClient.signInRequest(userCode: userCode, own.account)
            } catch
                where error.code == ProblemCode.notFound.rawValue
            { throw Failure(.no, error.detail) }
        case .operator(let client, _): return try await client.signInRequest(userCode: userCode)
        }
    }

    func approve(_ userCode: String, _ grant: Grant) async throws {
        switch self {
        case .person(let own):
            try await AccountClient.approve(
                userCode: userCode, stores: grant.stores, credentialSeconds: grant.seconds,
                own.account)
        case .operator(let client, let account):
            try await client.approve(userCode: userCode, accountName: account, grant)
        }
    }

    func deny(_ userCode: String) async throws {
        switch self {
        case .person(let own): try await AccountClient.deny(userCode: userCode, own.account)
        case .operator(let client, _): try await client.deny(userCode: userCode)
        }
    }

    /// The limits of this device's own rights, for people; nil if it has none.
    func ownLimits() async throws -> String? {
        guard case .person(let own) = self else { return nil }
        return try await AccountClient.ownDevice(own.account).limits
    }
}

/// The rights that an approval grants.
struct Grant: Hashable {
    /// Empty for all.
    var stores: [String]
    /// Nil for until the device is signed out.
    var seconds: Int64?
}
