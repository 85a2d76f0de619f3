// SPDX-License-Identifier: Apache-2.0

/// Polling instead of a stream that is not available: the account has its maximum, a proxy buffers
/// the server's messages, or streams end before they are ready. Ends when a stream is live.
struct Polling: Hashable, Sendable {
    /// The next poll.
    var next: Retry
    /// The pauses between polls. They grow while nothing happens.
    var pauses = Backoff()
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
    /// Whether it is a poll. If not, it only checks whether a live stream is complete.
    var isPoll: Bool
}

/// The server is at a cursor that the stream has not reached.
struct StreamLag: Hashable, Sendable {
    /// The pull that found the lag.
    var fetch: Int
    var cursor: Cursor
    var noticedAt: Int64
}

extension SyncEngine {
    /// The silence of a stream after which polling begins, in milliseconds.
    static let streamPatienceMilliseconds: Int64 = 10_000
    /// The lag of a silent live stream after which it counts as broken, in milliseconds.
    static let lagMilliseconds: Int64 = 2_000
    /// The number of failed attempts to open a stream before polling begins, if each may have
    /// failed for a reason that would make polls fail too.
    private static let attemptsMax = 3

    /// The interval between requests for the configuration without a stream, in milliseconds.
    private static let configMilliseconds: Int64 = 3_600_000

    /// Whether the server responds, so that pushes can be sent.
    var isReached: Bool { isLive || polling?.isWorking ?? false }

    /// - Parameter failure: Why a stream did not become live. Nil if the server ended it: so it
    ///   responds, and polls may succeed.
    mutating func beginPolling(after failure: LinkFailure?, at now: ClockReading) {
        streamsFailed += 1
        switch failure?.kind {
        case nil, .tooManyStreams, .timedOut: beginPolling(at: now.uptime)
        case .busy(let milliseconds): beginPolling(at: now.uptime + milliseconds)
        case .unreachable, .refused, .tooLarge, .cursorGone, .clockAhead:
            if streamsFailed >= Self.attemptsMax { beginPolling(at: now.uptime) }
        case .unauthorized: polling = nil
        }
    }

    mutating func beginPolling(at uptime: Int64) {
        guard polling == nil else { return }
        polling = Polling(next: Retry(at: uptime, notBefore: uptime))
    }

    /// Polls soon: something happened, and more may follow.
    mutating func hurryPolling(at now: ClockReading) {
        guard let next = polling?.next else { return }
        polling?.pauses.succeed()
        polling?.next.at = min(next.at, max(next.notBefore, now.uptime))
    }

    /// The uptime of the next poll; nil if none is due. While a stream is being opened, polls wait.
    var pollAt: Int64? {
        guard let polling, pullInFlight == nil, !isLive, isSignedIn, isLeading else { return nil }
        var next = polling.next
        if wantsFetch { next.hurry() }
        return isStreamComing
            ? max(next.at, streamHeartbeatAt + Self.streamPatienceMilliseconds) : next.at
    }

    private var isStreamComing: Bool {
        if case .connecting = link { streamHeardAt != nil } else { false }
    }

    /// Whether writes wait for final stamps and the clock's error is unknown in this boot. A
    /// machine may have been resumed from a copy of its memory.
    private func lacksTime(at now: ClockReading) -> Bool {
        !waiting.isEmpty && clock.correction?.isExact(at: now) != true
    }

    var wantsFetch: Bool { requests.contains { $0.fetch > fetchesStarted } }

    mutating func nextPull(at now: ClockReading) -> Effect? {
        if isLive {
            guard pullInFlight == nil, streamLag == nil,
                wantsFetch || lacksTime(at: now) || owesReceipt(at: now)
            else { return nil }
        } else {
            guard let pollAt, pollAt <= now.uptime else { return nil }
        }
        fetchesStarted += 1
        let isReceipt = owesReceipt(at: now)
        if isReceipt { receipts.sending(at: now.uptime) }
        let since = isReceipt ? receipts.saved : cursorToResumeFrom()
        let isSaved = saved(since) != nil
        pullInFlight = PullInFlight(
            number: fetchesStarted, since: since, isSaved: isSaved, sentAt: now, isPoll: !isLive)
        let isConfigured = now.uptime - (configuredAt ?? .min / 2) < Self.configMilliseconds
        return .pull(
            fetchesStarted, since: since, isSaved: isSaved,
            withConfig: !isLive && !isConfigured)
    }

    /// When the server is told what is on disk, unless a push does so before; nil if it need not be.
    /// Not while the disk fails: a cursor that stays behind for long may no longer be valid.
    var receiptAt: Int64? {
        guard isLive, isSignedIn, isLeading, pullInFlight == nil, streamLag == nil,
            diskFailure == nil
        else { return nil }
        return receipts.dueAt
    }

    private func owesReceipt(at now: ClockReading) -> Bool {
        receiptAt.map { $0 <= now.uptime } ?? false
    }

    mutating func pulled(_ number: Int, _ changes: ChangeSet, at now: ClockReading) {
        guard let pull = pullInFlight, pull.number == number else { return }
        pullInFlight = nil
        if pull.isSaved { receipts.told(pull.since) }
        if pull.isPoll { return polled(pull, changes, at: now) }
        meta.link.lastSync = clock.milliseconds(at: now)
        let changed = measureClock(changes.serverMilliseconds, sentAt: pull.sentAt, at: now)
        post(Notice(.serverChange, changed))
        // Changes that the stream has not brought are not taken, see decision 0007.
        if passedCursors.contains(changes.cursor) {
            fetchesFinished = max(fetchesFinished, number)
        } else {
            streamLag = StreamLag(fetch: number, cursor: changes.cursor, noticedAt: now.uptime)
        }
    }

    private mutating func polled(
        _ pull: PullInFlight, _ changes: ChangeSet, at now: ClockReading
    ) {
        guard pull.since == cursorToResumeFrom() else { return hurryPolling(at: now) }
        guard changes.isWhole || snapshotReason == nil else {
            let failure = LinkFailure(.unreachable, "the server did not send the store")
            return pollFailed(failure, at: now)
        }
        if let failure = refusal(of: changes) { return pollFailed(failure, at: now) }
        let isNews = changes.isWhole || !changes.records.isEmpty
        let shown = Shown(
            values: shownOfWaiting,
            changed: measureClock(changes.serverMilliseconds, sentAt: pull.sentAt, at: now))
        // A stream opened before carries only what is known by now, or less.
        isStreamStale = isStreamStale || changes.cursor != meta.cursor || changes.isWhole
        if let config = changes.config { adopt(config, at: now) }
        receive(changes, stamped: shown, at: now)
        unacknowledge(before: pull.number)
        finishFetch(pull.number)
        // The server responds again; streams and pushes may work too.
        if polling?.isWorking == false {
            hurryStream()
            pushRetry?.hurry()
        }
        polling?.isWorking = true
        if isNews { polling?.pauses.succeed() }
        pausePolling(at: now)
        setLink(.polling, error: meta.link.lastError)
    }

    private mutating func pausePolling(at now: ClockReading) {
        guard let pause = polling?.pauses.fail(using: &random) else { return }
        polling?.next = Retry(
            at: now.uptime + pause, notBefore: now.uptime + Self.hurryMilliseconds)
    }

    mutating func pullFailed(_ number: Int, _ failure: LinkFailure, at now: ClockReading) {
        guard let pull = pullInFlight, pull.number == number else { return }
        pullInFlight = nil
        if pull.isPoll { return pollFailed(failure, at: now) }
        // The stream is probably broken as well. Opening a new one fetches everything too.
        breakStream(failure, at: now)
    }

    private mutating func pollFailed(_ failure: LinkFailure, at now: ClockReading) {
        if takeCursorGone(failure) { return hurryPolling(at: now) }
        if polling?.isWorking ?? false { polling?.pauses.succeed() }
        polling?.isWorking = false
        pausePolling(at: now)
        switch failure.kind {
        case .unauthorized:
            closeLink()
            waitAfter(failure, at: now)
        case .busy(let milliseconds), .tooManyStreams(let milliseconds):
            let at = now.uptime + milliseconds
            polling?.next = Retry(at: at, notBefore: at)
        case .refused, .tooLarge: polling?.next.at = now.uptime + Self.refusedRetryMilliseconds
        case .unreachable, .timedOut, .cursorGone, .clockAhead:
            // A device that is offline need not wake twice.
            if case .waiting(let retry) = link { polling?.next.at = max(retry.at, now.uptime) }
        }
        if polling != nil {
            setLink(link.stream == nil ? .waiting : .connecting, error: failure.detail)
        }
        failRequests(failure)
    }

    /// When a silent live stream that lags behind the server counts as broken.
    var lagEndsAt: Int64? {
        guard isLive, let streamLag else { return nil }
        return max(streamLag.noticedAt, streamHeartbeatAt) + Self.lagMilliseconds
    }

    mutating func breakStream(_ failure: LinkFailure, at now: ClockReading) {
        guard let stream = link.stream else { return }
        streamEnded(stream, failure, at: now)
        hangUp = stream
    }
}
