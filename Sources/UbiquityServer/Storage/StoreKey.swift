// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A store's full name: identifiers are unique within an account only.
package struct StoreKey: Hashable, Sendable {
    package var account: AccountID
    package var identifier: StoreIdentifier
}
