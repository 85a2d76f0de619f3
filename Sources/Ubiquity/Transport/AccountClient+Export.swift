// SPDX-License-Identifier: Apache-2.0

internal import NIOHTTP1
package import UbiquityCore

extension AccountClient {
    /// Fetches all that an account has as an archive: the account that this device is signed in to.
    ///
    /// - Parameter take: Called with each piece, in their order. What it throws ends the export.
    /// - Throws: ``LinkFailure``, or what `take` threw; what was taken so far is no archive then.
    package static func export(
        of account: SignedInAccount, take: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws {
        let address = try ServerAddress(account.server)
        try await export(
            address, address.url("account", "export"), account.credential, take: take)
    }

    /// The same of any account. The operator's.
    package static func export(
        server: String, operatorCredential: String, accountName: String,
        take: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws {
        let address = try ServerAddress(server)
        try await export(
            address, address.url("accounts", accountName, "export"), operatorCredential,
            take: take)
    }

    private static func export(
        _ address: ServerAddress, _ url: String, _ credential: String,
        take: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws {
        let mediaType = "application/x-tar"
        let receiver = ArchiveReceiver(address, mediaType: mediaType, take: take)
        do {
            try await ServerRequest(
                address: address, method: .GET, url: url, credential: credential,
                accept: mediaType
            ).stream(to: receiver)
        } catch { throw receiver.failure ?? error }
    }
}
