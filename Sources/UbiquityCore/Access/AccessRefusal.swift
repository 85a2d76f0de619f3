// SPDX-License-Identifier: Apache-2.0

/// Why somebody may not do what was asked.
package enum AccessRefusal: Error, Hashable, Sendable, CaseIterable {
    case credentialMissing
    /// Unknown or revoked; which of them is not told.
    case credentialInvalid
    case credentialExpired
    /// Only the operator may.
    case onlyForOperator
    /// Only a device may.
    case notForOperator
    /// The credential is confined to other things of the same account.
    case confined
    /// The thing must look as though it did not exist, whether it does or not.
    case hidden
    /// The server takes registered apps only, and the store's is none.
    case appNotRegistered
}
