// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The result of reading a store for a device, at one moment.
package enum StoreRead: Hashable, Sendable {
    /// In no particular order.
    case changes(
        [StoredRecord], position: Position, isWhole: Bool, horizon: HybridTimestamp)
    case otherHistory
    case compacted
}
