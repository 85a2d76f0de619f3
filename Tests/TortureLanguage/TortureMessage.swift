// SPDX-License-Identifier: Apache-2.0

/// What an app under torture says, one JSON document a line, in the order in which it did and saw
/// it. Values are texts.
package enum TortureMessage: Codable, Hashable, Sendable {
    /// The store is open, and shows this.
    case opened([String: String])
    /// The store was let go and made again, and shows this.
    case reopened([String: String])
    /// It is about to make this write, for a killed app cannot say so afterwards; it saw these values
    /// under the keys. The time is in nanoseconds of the clock that all processes of the machine
    /// share, and that nobody sets.
    case writing(TortureWrite, seen: [String: String], at: UInt64)
    /// It is about to count.
    case counting(number: Int)
    /// The removal of what is not there, which would be no write.
    case passedOver
    /// The store refused the write.
    case refused(String)
    /// `synchronize()` was true (nil), or the status gave this reason why not.
    case saved(failure: String?)
    case roundTripBegun(Int)
    case roundTripEnded(Int, failure: String?)
    /// An observer was called, and all values were this in that moment.
    case told(reason: Int?, keys: [String], values: [String: String])
    case shows(TortureView)
}

/// How everything stands for an app.
package struct TortureView: Codable, Hashable, Sendable {
    package var values: [String: String]
    /// What all have counted, as far as the app knows.
    package var count: Int64
    package var pendingKeys: [String]
    package var connection: String
    package var lastError: String?
    package var diskError: String?

    package init(
        values: [String: String], count: Int64, pendingKeys: [String], connection: String,
        lastError: String?, diskError: String?
    ) {
        self.values = values
        self.count = count
        self.pendingKeys = pendingKeys
        self.connection = connection
        self.lastError = lastError
        self.diskError = diskError
    }
}
