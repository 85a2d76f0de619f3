// SPDX-License-Identifier: Apache-2.0

/// The push under way or the next one, and the writes that the server has acknowledged.
struct Outbox: Hashable, Sendable {
    var state = State.ready
    var backoff = Backoff()
    /// The size of a push that the connection bears.
    var bytesMax = Int.max
    var tooLarge: TooLarge?
    var bucket: TokenBucket
    /// The last fetch begun before a push failed without an answer. The server may have accepted
    /// that push, so what replaces its writes here must not get an earlier timestamp before a later
    /// fetch has told.
    var unknownPush: Int?
    /// The writes that the stream has not confirmed yet.
    var acknowledged: [Key: AcknowledgedWrite] = [:]
    /// The cursors that the stream has reached since a request was sent.
    var passedCursors: Set<Cursor> = []

    enum State: Hashable, Sendable {
        /// Becomes in flight when a write is on disk with its final stamp, and waiting if the
        /// server's allowance is used up.
        case ready
        /// Becomes ready when it is time, or sooner in a hurry.
        case waiting(Retry)
        /// Becomes ready with the answer, and waiting if the push fails.
        case inFlight(PushInFlight)
    }

    /// The next attempt; nil if none is waited for.
    var retry: Retry? { if case .waiting(let retry) = state { retry } else { nil } }

    /// Makes a waiting push as soon as it may be.
    mutating func hurry() {
        guard var retry else { return }
        retry.hurry()
        state = .waiting(retry)
    }
}

/// A push that was sent and is not answered yet.
struct PushInFlight: Hashable, Sendable {
    /// An answer with another number is ignored.
    var number: Int
    var push: Push
    var sentAt: ClockReading
    /// The number of the last stream opened before the push.
    var streams: Int
}

/// A transaction that was too large even alone.
struct TooLarge: Hashable, Sendable {
    var bytes: Int
    var failure: LinkFailure
    /// When one of this size is retried; nil means when nothing else waits.
    var retry: Retry?
}

/// A write that the server has acknowledged, while the stream has not yet brought what the server
/// holds now: this write or a later one.
///
/// It is not confirmed earlier for two reasons. A later write may be part of a transaction, which
/// the stream brings as one. And a server restored from a copy just before the answer would never
/// be told of a write that this device considers confirmed, because it resumes from the stream's
/// older cursor.
struct AcknowledgedWrite: Hashable, Sendable {
    var write: Record
    var transaction: UInt64
    var held: Record
    /// The server's cursor at the answer. A device that reaches it has all of this.
    var cursor: Cursor
    /// The last stream or poll begun before the answer. A later one includes the write.
    var fetch: Int
}
