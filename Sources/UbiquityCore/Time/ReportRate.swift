// SPDX-License-Identifier: Apache-2.0

/// How often one kind of trouble is reported: the first times at once, then once a second, with the
/// number of those that were left out. An app that does the same wrong thing without end fills no log.
package struct ReportRate: Hashable, Sendable {
    package static let allowance = Allowance(burst: 64, perSecond: 1)

    private var bucket: TokenBucket
    private var leftOut = 0

    /// - Parameter now: Milliseconds of any clock that does not go back.
    package init(now: Int64) { bucket = TokenBucket(Self.allowance, now: now) }

    /// - Returns: How many reports were left out since the last one; nil: this one is too.
    package mutating func admit(now: Int64) -> Int? {
        guard bucket.take(now: now) == nil else {
            leftOut += 1
            return nil
        }
        defer { leftOut = 0 }
        return leftOut
    }
}
