// SPDX-License-Identifier: Apache-2.0

/// How long a request is waited for: as long as bytes move, in either direction, however many they
/// are. Times are milliseconds of any clock that does not go back.
package struct TransferPatience: Hashable, Sendable {
    /// A server answers within that, and a connection that moves no byte for so long is dead.
    package static let answerMilliseconds: Int64 = 30_000

    /// Without a byte.
    package var silenceMilliseconds: Int64
    private var lastMove: Int64

    package init(now: Int64, silenceMilliseconds: Int64 = answerMilliseconds) {
        self.silenceMilliseconds = silenceMilliseconds
        lastMove = now
    }

    package mutating func moved(at now: Int64) { lastMove = max(lastMove, now) }

    /// When it ends, unless something moves before.
    package var end: Int64 { lastMove + silenceMilliseconds }
}

extension TransferPatience {
    /// The longest that a server can make a stream be waited for.
    package static let streamMillisecondsMax: Int64 = 600_000
    /// For a server that does not say how often it gives a sign of life: of version 0.1, each 20 seconds.
    private static let streamMillisecondsMin: Int64 = 50_000

    /// How long a stream may be silent: two signs of life may be lost or late.
    /// - Parameter keepAliveSeconds: As ``ServerConfig/keepAliveSeconds``.
    package static func streamMilliseconds(keepAliveSeconds: Int64) -> Int64 {
        let seconds = min(max(0, keepAliveSeconds), streamMillisecondsMax)
        return min(max(streamMillisecondsMin, seconds * 2_500), streamMillisecondsMax)
    }
}
