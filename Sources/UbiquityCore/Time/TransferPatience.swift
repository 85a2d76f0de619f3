// SPDX-License-Identifier: Apache-2.0

/// The timeout of a request: it may take any time as long as bytes move in either direction. Times
/// are milliseconds of any monotonic clock.
package struct TransferPatience: Hashable, Sendable {
    /// The longest silence: a server answers within this time, and a connection without traffic for
    /// this long is dead.
    package static let silenceMilliseconds: Int64 = 30_000

    private var lastMove: Int64

    package init(now: Int64) { lastMove = now }

    package mutating func moved(at now: Int64) { lastMove = max(lastMove, now) }

    /// When the request times out unless something moves before.
    package var end: Int64 { lastMove + Self.silenceMilliseconds }
}
