// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// What an account is told about one of its stores.
package struct StoreSummary: Hashable, Sendable {
    package var identifier: StoreIdentifier
    package var usage: Usage
    package var position: Position
}
