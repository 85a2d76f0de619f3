// SPDX-License-Identifier: Apache-2.0

/// An audited action. The raw values are the protocol's.
package enum AuditAction: String, Hashable, Sendable, CaseIterable {
    case accountCreated = "account-created"
    case accountRenamed = "account-renamed"
    case accountExported = "account-exported"
    case accountErased = "account-erased"
    case codeMade = "code-made"
    case signInFailed = "sign-in-failed"
    case deviceSignedIn = "device-signed-in"
    case deviceRenamed = "device-renamed"
    case deviceRevoked = "device-revoked"
    /// The device's credential had expired long before.
    case deviceRemoved = "device-removed"
    case appRegistered = "app-registered"
    case appRemoved = "app-removed"
    case limitChanged = "limit-changed"
    case databaseRestored = "database-restored"
}
