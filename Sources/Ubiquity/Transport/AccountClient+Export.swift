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
        try await request(.GET, account, "account", "export").archive(take: take)
    }
}
