// SPDX-License-Identifier: Apache-2.0

/// The reason a request is not allowed.
package enum AccessRefusal: Error, Hashable, Sendable, CaseIterable {
    case credentialMissing
    /// Unknown or revoked; the caller is not told which.
    case credentialInvalid
    case credentialExpired
    /// Only the operator may do this.
    case onlyForOperator
    /// Only a device may do this.
    case notForOperator
    /// The credential is confined to other stores of the same account.
    case confined
    /// The server must not reveal whether the thing exists.
    case hidden
    /// The server only accepts registered apps, and this store's app is not one of them.
    case appNotRegistered
}
