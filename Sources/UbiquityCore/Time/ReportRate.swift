// SPDX-License-Identifier: Apache-2.0

/// Limits how often one kind of problem is reported: the first ones at once, then one a second,
/// with the number of those left out. An app that repeats a mistake without end does not fill the
/// log.
package struct ReportRate: Hashable, Sendable {
    package static let allowance = Allowance(burst: 64, perSecond: 1)

    private var bucket: TokenBucket
    private var leftOut = 0

    /// - Parameter now: Milliseconds of any monotonic clock.
    package init(now: Int64) { bucket = TokenBucket(Self.allowance, now: now) }

    /// - Returns: The number of reports left out since the last one; nil if this one is left out
    ///   too.
    package mutating func admit(now: Int64) -> Int? {
        guard bucket.take(now: now) == nil else {
            leftOut += 1
            return nil
        }
        defer { leftOut = 0 }
        return leftOut
    }
}
