// SPDX-License-Identifier: Apache-2.0

/// The reason a device downloads the whole store.
enum SnapshotReason: Hashable, Sendable {
    case firstSync
    /// Tombstones since the cursor have been dropped: what the server does not have was deleted.
    case compacted
    /// The server has another history: it is offered everything that it lacks or has in an older
    /// version.
    case otherHistory
}

extension SyncEngine {
    /// The pause after a refused credential, in milliseconds.
    private static let unauthorizedRetryMilliseconds: Int64 = 300_000
    /// The pause after a permanently refused request, in milliseconds.
    static let refusedRetryMilliseconds: Int64 = 60_000
    /// The minimum time between two hurried attempts, in milliseconds.
    static let hurryMilliseconds: Int64 = 1_000

    var isLive: Bool { link.live != nil }

    var linkRetryAt: Int64? {
        guard isSignedIn, isLeading, hasKey else { return nil }
        return switch link.state {
        case .waiting(let retry): retry.at
        // The time at which polling begins.
        case .connecting(let stream) where link.polling == nil: stream.patienceEndsAt
        case .idle, .connecting, .live: nil
        }
    }

    mutating func nextLinkEffect(at now: ClockReading) -> Effect? {
        if let stream = link.hangUp {
            link.hangUp = nil
            return .hangUp(stream: stream)
        }
        guard isLeading, isSignedIn, hasKey else { return nil }
        switch link.state {
        case .idle: return open(at: now)
        case .waiting(let retry) where retry.at <= now.uptime: return open(at: now)
        case .connecting(let stream) where stream.patienceEndsAt <= now.uptime:
            beginPolling(at: now.uptime)
            link.polling?.isStreamSilent = true
            return nil
        case .live(let stream):
            guard let lagEndsAt = stream.lagEndsAt, lagEndsAt <= now.uptime else { return nil }
            breakStream(LinkFailure(.unreachable, "the stream lags behind"), at: now)
            return nextLinkEffect(at: now)
        case .waiting, .connecting: return nil
        }
    }

    private mutating func open(at now: ClockReading) -> Effect {
        counts.streams += 1
        counts.fetches += 1
        let cursor = cursorToResumeFrom()
        let isSaved = isSaved(cursor)
        link.state = .connecting(
            ConnectingStream(
                number: counts.streams, fetch: counts.fetches, sentAt: now,
                heartbeatAt: now.uptime, since: cursor, isSaved: isSaved))
        if !isReached { meta.link.state = .connecting }
        meta.link.nextRetry = nil
        return .listen(stream: counts.streams, since: cursor, isSaved: isSaved)
    }

    /// Nil if the whole store is needed.
    mutating func cursorToResumeFrom() -> Cursor? {
        if !hasToldFirstSync {
            snapshotReason = .firstSync
        } else if meta.cursor == nil || !meta.hasCompletedFirstSync, snapshotReason == nil {
            snapshotReason = .compacted
        }
        return snapshotReason == nil ? meta.cursor : nil
    }

    /// Whether everything up to the cursor is on disk.
    func isSaved(_ cursor: Cursor?) -> Bool { cursor != nil && cursor == receipts.saved }

    mutating func lead(_ leads: Bool, at now: ClockReading) {
        if leads {
            leader = nil
            meta.term = place.term &+ 1
            unsaved.meta = true
            post(Notice(.serverChange, finalizeStamps(at: now)))
            takeOverRequests()
        } else if isLeading {
            leader = LeaderMonitor()
            meta.term = place.term
            link.close()
        }
    }

    mutating func received(_ message: StreamMessage, on stream: Int, at now: ClockReading) {
        guard stream == link.stream else { return }
        link.heard(at: now)
        if link.connecting?.isStale ?? false {
            (link.hangUp, link.state) = (stream, .idle)
            return
        }
        switch message {
        case .progress: break
        case .changes(let sealed):
            let changes: ChangeSet
            do throws(LinkFailure) { changes = try opened(sealed, at: now) } catch {
                return breakStream(error, at: now)
            }
            if let failure = refusal(of: changes) { return breakStream(failure, at: now) }
            var shown = Shown()
            if let stream = link.connecting {
                shown.values = shownOfWaiting
                shown.changed = measureClock(changes.serverMilliseconds, by: stream, at: now)
            }
            receive(changes, stamped: shown, at: now)
        case .ready(let cursor, let config):
            do throws(LinkFailure) {
                try checkTime(config.serverMilliseconds, at: now)
            } catch { return breakStream(error, at: now) }
            becomeLive(cursor, config, at: now)
        case .resync:
            link.close()
            wait(link.backoff.fail(using: &random), at: now)
        }
    }

    /// The values that the app sees of keys with waiting writes, acknowledged or not.
    var shownOfWaiting: [Key: PropertyListValue?] {
        let keys = waiting.union(outbox.acknowledged.keys)
        return Dictionary(last: keys.lazy.map { ($0.whole, self[$0.whole]) })
    }

    private mutating func becomeLive(
        _ cursor: Cursor, _ config: ServerConfig, at now: ClockReading
    ) {
        guard let stream = link.connecting else { return goOn(from: cursor, config, at: now) }
        guard snapshotReason == nil else {
            link.close()
            wait(link.backoff.fail(using: &random), at: now)
            setLink(.waiting, error: "the server did not send the store")
            return
        }
        var shown = Shown(values: shownOfWaiting)
        shown.changed = measureClock(config.serverMilliseconds, by: stream, at: now)
        link.live = LiveStream(number: stream.number, heartbeatAt: stream.heartbeatAt)
        if stream.isSaved { receipts.told(stream.since) }
        link.backoff.succeed()
        link.failures = 0
        outbox.hurry()
        finishFetch(stream.fetch)
        endPolling()
        meta.cursor = cursor
        shown.changed.formUnion(pass(cursor))
        unacknowledge(before: .max)
        shown.changed.formUnion(renewWaiting())
        post(Notice(.serverChange, shown.changed(in: self)))
        agree()
        adopt(config, at: now)
        meta.link.lastSync = clock.milliseconds(at: now)
        setLink(.connected)
    }

    /// A live stream goes on by another connection, see ``SharedStream``. As with a new stream, that
    /// may be to a server that was restored, so what was acknowledged and did not come is sent again.
    private mutating func goOn(from cursor: Cursor, _ config: ServerConfig, at now: ClockReading) {
        guard isLive else { return }
        counts.streams += 1
        let before = meta
        meta.cursor = cursor
        post(Notice(.serverChange, pass(cursor)))
        unacknowledge(before: .max)
        // Of what the connection before was behind, or of a server that is no more.
        link.live?.lag = nil
        endPolling()
        adopt(config, at: now)
        if meta != before { unsaved.meta = true }
    }

    /// Records that everything the server had when that fetch began is here.
    mutating func finishFetch(_ fetch: Int) {
        counts.fetchesFinished = max(counts.fetchesFinished, fetch)
        if let last = outbox.unknownPush, last < fetch { outbox.unknownPush = nil }
    }

    mutating func adopt(_ config: ServerConfig, at now: ClockReading) {
        if config.limits.believed.pushBytesMax > meta.limits.pushBytesMax { outbox.tooLarge = nil }
        meta.limits = config.limits.believed
        meta.allowance = config.allowance
        outbox.bucket.adopt(config.allowance, now: now.uptime)
        configuredAt = now.uptime
    }

    /// Requests that await a poll's answer, even one that was ignored, now await a new poll.
    private mutating func endPolling() {
        (link.polling, link.pull) = (nil, nil)
        for index in requests.indices where requests[index].fetch > counts.fetchesFinished {
            requests[index].fetch = counts.fetches + 1
        }
    }

    mutating func streamEnded(_ stream: Int, _ failure: LinkFailure?, at now: ClockReading) {
        guard stream == link.stream else { return }
        let wasLive = isLive
        let since = link.connecting.map { $0.since } ?? meta.cursor
        link.state = .idle
        if wasLive { link.pull = nil }
        let reason = failure ?? LinkFailure(.unreachable, "the server ended the stream")
        if takeCursorGone(reason, since: since) { return }
        waitAfter(reason, at: now)
        // Else it went on by another connection, and was refused there.
        let isBroken =
            switch reason.kind {
            case .unreachable, .timedOut, .busy: true
            default: false
            }
        if wasLive, isBroken { return }
        beginPolling(after: failure, at: now)
        // Callers waiting for a round trip get another attempt, by polling or after a lost
        // connection.
        if link.polling == nil { failRequests(reason) }
    }

    /// Has the next stream or poll download the whole store if the server has no such cursor. Of a
    /// stream and a poll under way at once, both may hear that, one of them when the store is here.
    /// - Parameter since: The cursor that was sent; nil if the whole store was asked for.
    /// - Returns: Whether that is why it failed. False if the whole store was asked for.
    mutating func takeCursorGone(_ failure: LinkFailure, since: Cursor?) -> Bool {
        guard case .cursorGone(let isOtherHistory) = failure.kind, let since else { return false }
        if since == meta.cursor, snapshotReason != .otherHistory {
            snapshotReason = isOtherHistory ? .otherHistory : .compacted
        }
        return true
    }

    /// Waits before the next attempt for as long as the failure requires.
    mutating func waitAfter(_ failure: LinkFailure, at now: ClockReading) {
        switch failure.kind {
        case .unauthorized:
            wait(Self.unauthorizedRetryMilliseconds, at: now)
            setLink(.unauthorized, error: failure.detail)
            return
        case .sealed(let generation) where generation > self.generation:
            if !isSealed { hasHeardSealed = true }
            wait(Self.refusedRetryMilliseconds, at: now)
            setLink(.locked, error: LinkStatus.lockedReason)
            return
        case .refused, .tooLarge, .sealed: wait(Self.refusedRetryMilliseconds, at: now)
        case .busy(let milliseconds), .tooManyStreams(let milliseconds):
            let jitter = Int64(random.next() % UInt64(Backoff.firstMilliseconds))
            wait(milliseconds + jitter, at: now, isOrdered: true)
        case .unreachable, .timedOut, .cursorGone, .clockAhead:
            wait(link.backoff.fail(using: &random), at: now)
        }
        setLink(.waiting, error: failure.detail)
    }

    private mutating func wait(
        _ milliseconds: Int64, at now: ClockReading, isOrdered: Bool = false
    ) {
        let notBefore = isOrdered ? milliseconds : min(milliseconds, Self.hurryMilliseconds)
        link.state = .waiting(
            Retry(at: now.uptime + milliseconds, notBefore: now.uptime + notBefore))
        meta.link.nextRetry = now.wall + milliseconds
    }

    mutating func hurry(at now: ClockReading) {
        saveFailure?.retryAt = nil
        link.hurry()
        outbox.hurry()
        outbox.tooLarge?.retry?.hurry()
        link.polling?.pauses.succeed()
        link.polling?.next.hurry()
    }

    /// The beginning of a stream was made before its first byte was sent.
    private mutating func measureClock(
        _ serverMilliseconds: Int64, by stream: ConnectingStream, at now: ClockReading
    ) -> Set<Key> {
        measureClock(
            serverMilliseconds, sentAt: stream.sentAt, heardAt: stream.heardAt, at: now)
    }

    /// Measures the clock by the server's time and finalises waiting stamps.
    /// - Parameters:
    ///   - sentAt: When the request was sent.
    ///   - heardAt: When the answer began to arrive; nil means now.
    /// - Returns: The keys whose value changed for the app.
    mutating func measureClock(
        _ serverMilliseconds: Int64, sentAt: ClockReading, heardAt: ClockReading? = nil,
        at now: ClockReading
    ) -> Set<Key> {
        let correction = ClockCorrection(
            serverMilliseconds: serverMilliseconds, sentAt: sentAt, heardAt: heardAt ?? now)
        if correction.isBetter(than: clock.correction) {
            clock.adopt(correction, at: now)
            meta.correction = correction
            unsaved.meta = true
        }
        return finalizeStamps(at: now)
    }

    mutating func setLink(_ state: LinkStatus.State, error: String? = nil) {
        let waits = state == .waiting || state == .connecting
        meta.link.state = waits && isReached ? .polling : state
        let isHeldBack = meta.link.state == .polling && link.polling?.isStreamSilent == true
        meta.link.lastError = isHeldBack ? Self.streamHeldBack : error
        if state != .waiting, state != .polling { meta.link.nextRetry = nil }
        unsaved.meta = unsaved.meta || isLeading
    }
}
