// SPDX-License-Identifier: Apache-2.0

/// The connection of the leading process to the server: a stream of changes, or polls while a
/// stream is not available.
struct Link: Hashable, Sendable {
    var state = State.idle
    /// A stream to close.
    var hangUp: Int?
    var backoff = Backoff()
    /// The number of attempts since a stream was last live.
    var failures = 0
    /// Nil while a stream is live.
    var polling: Polling?
    /// While a stream is live, it checks whether the stream is complete. Otherwise it is a poll.
    var pull: PullInFlight?

    enum State: Hashable, Sendable {
        /// No stream, and nothing to retry. Becomes connecting when this process leads and is
        /// signed in.
        case idle
        /// Becomes connecting when it is time, or sooner in a hurry.
        case waiting(Retry)
        /// The stream is open but not up to date. Becomes live with `ready`, and waiting if it
        /// ends.
        case connecting(ConnectingStream)
        /// Up to date. Becomes waiting if it ends, and idle if another account or process takes
        /// over.
        case live(LiveStream)
    }

    var connecting: ConnectingStream? {
        get { if case .connecting(let stream) = state { stream } else { nil } }
        set { if let newValue { state = .connecting(newValue) } }
    }

    var live: LiveStream? {
        get { if case .live(let stream) = state { stream } else { nil } }
        set { if let newValue { state = .live(newValue) } }
    }

    /// The number of the open stream.
    var stream: Int? { connecting?.number ?? live?.number }

    /// The open stream has given a heartbeat.
    mutating func heard(at now: ClockReading) {
        connecting?.heartbeatAt = now.uptime
        if connecting?.heardAt == nil { connecting?.heardAt = now }
        live?.heartbeatAt = now.uptime
    }

    /// Opens a waiting stream as soon as it may be.
    mutating func hurry() {
        guard case .waiting(var retry) = state else { return }
        retry.hurry()
        state = .waiting(retry)
    }

    /// Ends the stream and polling from this side. A new stream is opened when needed.
    mutating func close() { self = Link(hangUp: stream ?? hangUp, backoff: backoff) }
}

/// A stream that is open but not up to date.
struct ConnectingStream: Hashable, Sendable {
    var number: Int
    /// Its number among the fetches.
    var fetch: Int
    var sentAt: ClockReading
    /// When its first byte arrived.
    var heardAt: ClockReading?
    /// When it last gave a heartbeat, by the uptime.
    var heartbeatAt: Int64
    /// Nil if it asked for the whole store.
    var since: Cursor?
    /// Whether everything up to that cursor was on disk.
    var isSaved: Bool
    /// Polls have overtaken it.
    var isStale = false

    /// The silence after which polling begins, in milliseconds.
    static let patienceMilliseconds: Int64 = 10_000

    var patienceEndsAt: Int64 { heartbeatAt + Self.patienceMilliseconds }
}

struct LiveStream: Hashable, Sendable {
    var number: Int
    /// When it last gave a heartbeat, by the uptime.
    var heartbeatAt: Int64
    /// A cursor of the server that the stream has not reached.
    var lag: Lag?

    struct Lag: Hashable, Sendable {
        /// The pull that found the lag.
        var fetch: Int
        var cursor: Cursor
        var noticedAt: Int64
    }

    /// The lag of a silent stream after which it counts as broken, in milliseconds.
    static let lagMilliseconds: Int64 = 2_000

    /// When a silent stream that lags behind the server counts as broken.
    var lagEndsAt: Int64? { lag.map { max($0.noticedAt, heartbeatAt) + Self.lagMilliseconds } }
}

/// Polling instead of a stream that is not available: the account has its maximum, a proxy buffers
/// the server's messages, or streams end before they are ready. Ends when a stream is live.
struct Polling: Hashable, Sendable {
    /// The next poll.
    var next: Retry
    /// The pauses between polls. They grow while nothing happens.
    var pauses = Backoff()
    /// The last stream said nothing, not even that it is alive.
    var isStreamSilent = false
    /// The last poll was answered, so pushes are sent too.
    var isWorking = false
}

/// A pull that was sent and is not answered yet.
struct PullInFlight: Hashable, Sendable {
    var number: Int
    var since: Cursor?
    /// Whether everything up to that cursor was on disk.
    var isSaved: Bool
    var sentAt: ClockReading
}

/// The time of the next attempt, in milliseconds of uptime.
struct Retry: Hashable, Sendable {
    var at: Int64
    /// The earliest time even in a hurry: the server asked for it, or the last attempt was a moment
    /// ago.
    var notBefore: Int64

    /// Moves the attempt to the earliest time.
    mutating func hurry() { at = min(at, notBefore) }
}
