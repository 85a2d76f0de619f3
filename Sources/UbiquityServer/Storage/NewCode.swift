// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A sign-in code as stored.
package struct NewCode: Hashable, Sendable {
    package var hash: SecretHash
    package var account: AccountID
    /// When the code expires, in milliseconds since 1970 by the server's clock.
    package var expires: Int64
    /// The rights of the device that signs in with it.
    package var terms = CredentialTerms()
}
