// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

package struct Account: Hashable, Sendable {
    package var id: AccountID
    package var name: AccountName
    /// The server's milliseconds since 1970.
    package var created: Int64
}
