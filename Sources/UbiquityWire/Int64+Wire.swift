// SPDX-License-Identifier: Apache-2.0

extension Int64 {
    /// A time as a server says it, in milliseconds since 1970. It has at most 48 bits, as the
    /// timestamps of writes have: whoever adds to it need not think of an overflow.
    package init(wireMilliseconds milliseconds: UInt64) {
        self = Int64(Swift.min(milliseconds, 1 << 48 - 1))
    }
}
