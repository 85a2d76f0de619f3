// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// An account and a store identifier, which is unique within its account only.
package struct StoreReference: Hashable, Sendable {
    package var account: AccountID
    package var identifier: StoreIdentifier
}
