// SPDX-License-Identifier: Apache-2.0

extension Int64 {
    /// A server's time in milliseconds since 1970, limited to 48 bits like the timestamps of
    /// writes, so that additions to it cannot overflow.
    package init(wireMilliseconds milliseconds: UInt64) {
        self = Int64(Swift.min(milliseconds, 1 << 48 - 1))
    }
}
