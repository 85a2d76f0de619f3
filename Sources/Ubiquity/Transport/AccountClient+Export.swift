// SPDX-License-Identifier: Apache-2.0

internal import NIOHTTP1
package import UbiquityCore

extension AccountClient {
    /// Downloads the archive of the account that this device is signed in to.
    ///
    /// - Parameter take: Called with each piece, in order. An error that it throws ends the export.
    /// - Throws: ``LinkFailure``, or the error of `take`; the pieces so far are not a valid archive
    ///   then.
    package static func export(
        of account: SignedInAccount, take: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws {
        try await request(.GET, account, "account", "export").archive(take: take)
    }
}
