// SPDX-License-Identifier: Apache-2.0

extension SyncEngine {
    /// The number of failed attempts to open a stream before polling begins, if each may have
    /// failed for a reason that would make polls fail too.
    private static let attemptsMax = 3

    /// Why there is no stream, if polls are answered and it says nothing.
    static let streamHeldBack =
        "a proxy between this device and the server holds the stream back"

    /// The interval between requests for the configuration without a stream, in milliseconds.
    private static let configMilliseconds: Int64 = 3_600_000

    /// Whether the server responds, so that pushes can be sent.
    var isReached: Bool { isLive || link.polling?.isWorking ?? false }

    /// - Parameter failure: Why a stream did not become live. Nil if the server ended it: so it
    ///   responds, and polls may succeed.
    mutating func beginPolling(after failure: LinkFailure?, at now: ClockReading) {
        link.failures += 1
        switch failure?.kind {
        case nil, .tooManyStreams, .timedOut: beginPolling(at: now.uptime)
        case .busy(let milliseconds): beginPolling(at: now.uptime + milliseconds)
        case .unreachable, .refused, .tooLarge, .cursorGone, .clockAhead:
            if link.failures >= Self.attemptsMax { beginPolling(at: now.uptime) }
        case .unauthorized, .sealed: link.polling = nil
        }
        link.polling?.isStreamSilent = failure?.kind == .timedOut
    }

    mutating func beginPolling(at uptime: Int64) {
        guard link.polling == nil else { return }
        link.polling = Polling(next: Retry(at: uptime, notBefore: uptime))
    }

    /// Polls soon: something happened, and more may follow.
    mutating func hurryPolling(at now: ClockReading) {
        guard let next = link.polling?.next else { return }
        link.polling?.pauses.succeed()
        link.polling?.next.at = min(next.at, max(next.notBefore, now.uptime))
    }

    /// The uptime of the next poll; nil if none is due. While a stream is being opened, polls wait.
    var pollAt: Int64? {
        guard var next = link.polling?.next, link.pull == nil, isSignedIn, isLeading
        else { return nil }
        if wantsFetch { next.hurry() }
        guard let stream = link.connecting, stream.heardAt != nil else { return next.at }
        return max(next.at, stream.patienceEndsAt)
    }

    /// Whether writes wait for final stamps and the clock's error is unknown in this boot. A
    /// machine may have been resumed from a copy of its memory.
    private func lacksTime(at now: ClockReading) -> Bool {
        !waiting.isEmpty && clock.correction?.isExact(at: now) != true
    }

    var wantsFetch: Bool { requests.contains { $0.fetch > counts.fetches } }

    mutating func nextPull(at now: ClockReading) -> Effect? {
        let isReceipt = owesReceipt(at: now)
        if let stream = link.live {
            guard link.pull == nil, stream.lag == nil,
                wantsFetch || lacksTime(at: now) || isReceipt
            else { return nil }
        } else {
            guard let pollAt, pollAt <= now.uptime else { return nil }
        }
        counts.fetches += 1
        if isReceipt { receipts.sending(at: now.uptime) }
        let since = isReceipt ? receipts.saved : cursorToResumeFrom()
        let isSaved = isSaved(since)
        link.pull = PullInFlight(
            number: counts.fetches, since: since, isSaved: isSaved, sentAt: now)
        let isConfigured = now.uptime - (configuredAt ?? .min / 2) < Self.configMilliseconds
        return .pull(
            counts.fetches, since: since, isSaved: isSaved,
            withConfig: !isLive && !isConfigured)
    }

    /// When the server is told what is on disk, unless a push does so before; nil if it need not be.
    /// Not while the disk fails: a cursor that stays behind for long may no longer be valid.
    var receiptAt: Int64? {
        guard let stream = link.live, stream.lag == nil, link.pull == nil, diskFailure == nil
        else { return nil }
        return receipts.dueAt
    }

    private func owesReceipt(at now: ClockReading) -> Bool {
        receiptAt.map { $0 <= now.uptime } ?? false
    }

    mutating func pulled(_ number: Int, _ sealed: ChangeSet, at now: ClockReading) {
        guard let pull = link.pull, pull.number == number else { return }
        let changes: ChangeSet
        do throws(LinkFailure) { changes = try opened(sealed, at: now) } catch {
            return pullFailed(number, error, at: now)
        }
        link.pull = nil
        if pull.isSaved { receipts.told(pull.since) }
        if !isLive { return polled(pull, changes, at: now) }
        meta.link.lastSync = clock.milliseconds(at: now)
        let changed = measureClock(changes.serverMilliseconds, sentAt: pull.sentAt, at: now)
        post(Notice(.serverChange, changed))
        // Changes that the stream has not brought are not taken, see decision 0007.
        if outbox.passedCursors.contains(changes.cursor) {
            counts.fetchesFinished = max(counts.fetchesFinished, number)
        } else {
            link.live?.lag = LiveStream.Lag(
                fetch: number, cursor: changes.cursor, noticedAt: now.uptime)
        }
    }

    private mutating func polled(
        _ pull: PullInFlight, _ changes: ChangeSet, at now: ClockReading
    ) {
        guard pull.since == cursorToResumeFrom() else { return hurryPolling(at: now) }
        guard changes.isWhole || snapshotReason == nil else {
            let failure = LinkFailure(.unreachable, "the server did not send the store")
            return pollFailed(failure, since: pull.since, at: now)
        }
        if let failure = refusal(of: changes) {
            return pollFailed(failure, since: pull.since, at: now)
        }
        let isNews = changes.isWhole || !changes.records.isEmpty
        let shown = Shown(
            values: shownOfWaiting,
            changed: measureClock(changes.serverMilliseconds, sentAt: pull.sentAt, at: now))
        // A stream opened before carries only what is known by now, or less.
        if changes.cursor != meta.cursor || changes.isWhole { link.connecting?.isStale = true }
        if let config = changes.config { adopt(config, at: now) }
        receive(changes, of: pull.number, stamped: shown, at: now)
        agree()
        finishFetch(pull.number)
        // The server responds again; streams and pushes may work too.
        if link.polling?.isWorking == false {
            link.hurry()
            outbox.hurry()
        }
        link.polling?.isWorking = true
        if isNews { link.polling?.pauses.succeed() }
        pausePolling(at: now)
        setLink(.polling, error: meta.link.lastError)
    }

    private mutating func pausePolling(at now: ClockReading) {
        guard let pause = link.polling?.pauses.fail(using: &random) else { return }
        link.polling?.next = Retry(
            at: now.uptime + pause, notBefore: now.uptime + Self.hurryMilliseconds)
    }

    mutating func pullFailed(_ number: Int, _ failure: LinkFailure, at now: ClockReading) {
        guard let pull = link.pull, pull.number == number else { return }
        link.pull = nil
        if !isLive { return pollFailed(failure, since: pull.since, at: now) }
        // The stream is probably broken as well. Opening a new one fetches everything too.
        breakStream(failure, at: now)
    }

    /// - Parameter since: The cursor that was sent; nil if the whole store was asked for.
    private mutating func pollFailed(
        _ failure: LinkFailure, since: Cursor?, at now: ClockReading
    ) {
        if takeCursorGone(failure, since: since) { return hurryPolling(at: now) }
        if link.polling?.isWorking ?? false { link.polling?.pauses.succeed() }
        link.polling?.isWorking = false
        pausePolling(at: now)
        switch failure.kind {
        case .unauthorized, .sealed:
            link.close()
            waitAfter(failure, at: now)
        case .busy(let milliseconds), .tooManyStreams(let milliseconds):
            let at = now.uptime + milliseconds
            link.polling?.next = Retry(at: at, notBefore: at)
        case .refused, .tooLarge: link.polling?.next.at = now.uptime + Self.refusedRetryMilliseconds
        case .unreachable, .timedOut, .cursorGone, .clockAhead:
            // A device that is offline need not wake twice.
            if case .waiting(let retry) = link.state {
                link.polling?.next.at = max(retry.at, now.uptime)
            }
        }
        if link.polling != nil {
            setLink(link.stream == nil ? .waiting : .connecting, error: failure.detail)
        }
        failRequests(failure)
    }

    mutating func breakStream(_ failure: LinkFailure, at now: ClockReading) {
        guard let stream = link.stream else { return }
        streamEnded(stream, failure, at: now)
        link.hangUp = stream
    }
}
