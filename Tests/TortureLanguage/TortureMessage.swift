// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore
package import UbiquitySimulation

/// A message of an app under torture, one JSON document a line, in the order in which it did and
/// saw things. Values are texts.
package enum TortureMessage: Codable, Hashable, Sendable {
    /// The store is open, and shows this.
    case opened([String: String])
    /// The store was let go and made again, and shows this.
    case reopened([String: String])
    /// It is about to make this write, for a killed app cannot say so afterwards; it saw these values
    /// under the keys. The time is in nanoseconds of the clock that all processes of the machine
    /// share, and that nobody sets.
    case writing(TortureWrite, seen: [String: String], at: UInt64)
    /// It did this to a key whose writes merge; nothing of it is on the disk yet.
    case merged(number: Int, Key, AppOperation.Act, at: UInt64)
    /// The requested write would change nothing, such as the removal of a key that does not exist.
    case passedOver
    case declared
    /// The store refused the write.
    case refused(String)
    /// `synchronize()` was true (nil), or the status gave this reason why not.
    case saved(failure: String?)
    case roundTripBegun(Int)
    case roundTripEnded(Int, failure: String?)
    /// An observer was called, and all values were this in that moment.
    case notified(reason: Int?, keys: [String], values: [String: String])
    case shows(TortureView)
}

/// An app's view of its store.
package struct TortureView: Codable, Hashable, Sendable {
    /// Of each record, parts by their own keys.
    package var values: [Key: PropertyListValue]
    /// The values that the app sees of keys whose writes merge.
    package var merged: [Key: PropertyListValue]
    package var pendingKeys: [String]
    package var connection: String
    package var lastError: String?
    package var diskError: String?

    package init(
        values: [Key: PropertyListValue], merged: [Key: PropertyListValue],
        pendingKeys: [String], connection: String, lastError: String?, diskError: String?
    ) {
        self.values = values
        self.merged = merged
        self.pendingKeys = pendingKeys
        self.connection = connection
        self.lastError = lastError
        self.diskError = diskError
    }
}
