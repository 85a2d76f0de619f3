// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Nanoseconds of a clock that all processes of a machine share, and that nobody sets.
package enum MonotonicTime {
    package static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
