// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A sign-in code as a storage keeps it.
package struct NewCode: Hashable, Sendable {
    package var hash: SecretHash
    package var account: AccountID
    /// Until when the code can be used, in the server's milliseconds since 1970.
    package var expires: Int64
    /// What the device that signs in with it may do.
    package var terms = CredentialTerms()
}
