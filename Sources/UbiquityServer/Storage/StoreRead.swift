// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// What a store has for a device: one moment of it.
package enum StoreRead: Hashable, Sendable {
    /// In no particular order.
    case changes(
        [StoredRecord], position: Position, isWhole: Bool, horizon: HybridTimestamp)
    case otherHistory
    case forgotten
}
