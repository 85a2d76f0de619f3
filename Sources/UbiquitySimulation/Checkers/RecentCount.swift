// SPDX-License-Identifier: Apache-2.0

/// Counts recent occurrences.
struct RecentCount {
    private var times: [Int64] = []

    /// Records an occurrence.
    /// - Returns: The number of occurrences in the last so many milliseconds, including this one.
    mutating func note(at now: Int64, within milliseconds: Int64) -> Int {
        times.removeAll { $0 < now - milliseconds }
        times.append(now)
        return times.count
    }
}
