// SPDX-License-Identifier: Apache-2.0

/// How often something happened lately.
struct RecentCount {
    private var times: [Int64] = []

    /// Takes note that it happens now.
    /// - Returns: How often it has in so many milliseconds, this time included.
    mutating func note(at now: Int64, within milliseconds: Int64) -> Int {
        times.removeAll { $0 < now - milliseconds }
        times.append(now)
        return times.count
    }
}
