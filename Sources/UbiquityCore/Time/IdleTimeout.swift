// SPDX-License-Identifier: Apache-2.0

/// The timeout of a request: it may take any time as long as bytes move in either direction. Times
/// are milliseconds of any monotonic clock.
package struct IdleTimeout: Hashable, Sendable {
    /// The longest silence: a server answers within this time, and a connection without traffic for
    /// this long is dead.
    package static let answerMilliseconds: Int64 = 30_000

    /// The maximum time without a byte.
    package var silenceMilliseconds: Int64
    private var lastMove: Int64

    package init(now: Int64, silenceMilliseconds: Int64 = answerMilliseconds) {
        self.silenceMilliseconds = silenceMilliseconds
        lastMove = now
    }

    package mutating func moved(at now: Int64) { lastMove = max(lastMove, now) }

    /// When the request times out unless something moves before.
    package var end: Int64 { lastMove + silenceMilliseconds }
}

extension IdleTimeout {
    /// The longest silence that a server can make a client tolerate.
    package static let streamMillisecondsMax: Int64 = 600_000
    /// For a server that does not announce its keep-alive interval. In version 0.1 it is 20
    /// seconds.
    private static let streamMillisecondsMin: Int64 = 50_000

    /// The longest silence of a stream: two keep-alives may be lost or late.
    /// - Parameter keepAliveSeconds: As ``ServerConfig/keepAliveSeconds``.
    package static func streamMilliseconds(keepAliveSeconds: Int64) -> Int64 {
        let seconds = min(max(0, keepAliveSeconds), streamMillisecondsMax)
        return min(max(streamMillisecondsMin, seconds * 2_500), streamMillisecondsMax)
    }
}
