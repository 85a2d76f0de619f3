// SPDX-License-Identifier: Apache-2.0

/// The information that a person needs to sign in on a new device.
package struct Invitation: Hashable, Sendable {
    package var account: Account
    /// The code to type on the device. Valid once, and not stored anywhere.
    package var code: String
    /// Milliseconds since 1970.
    package var expires: Int64
}
