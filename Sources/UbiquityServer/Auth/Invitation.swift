// SPDX-License-Identifier: Apache-2.0

/// What a person needs to sign in on a new device.
package struct Invitation: Hashable, Sendable {
    package var account: Account
    /// To be typed on the device; good once. Not stored anywhere.
    package var code: String
    /// Milliseconds since 1970.
    package var expires: Int64
}
