// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A store as listed for its account.
package struct StoreSummary: Hashable, Sendable {
    package var identifier: StoreIdentifier
    package var usage: Usage
    package var position: Position
}
