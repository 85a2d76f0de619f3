// SPDX-License-Identifier: Apache-2.0

/// An account with its devices, the oldest first.
package struct AccountSummary: Hashable, Sendable {
    package var account: Account
    package var devices: [Device]
}
