// SPDX-License-Identifier: Apache-2.0

/// How long a request is waited for: as long as bytes move, in either direction, however many they
/// are. Times are milliseconds of any clock that does not go back.
package struct TransferPatience: Hashable, Sendable {
    /// A server answers within that, and a connection that moves no byte for so long is dead.
    package static let silenceMilliseconds: Int64 = 30_000

    private var lastMove: Int64

    package init(now: Int64) { lastMove = now }

    package mutating func moved(at now: Int64) { lastMove = max(lastMove, now) }

    /// When it ends, unless something moves before.
    package var end: Int64 { lastMove + Self.silenceMilliseconds }
}
