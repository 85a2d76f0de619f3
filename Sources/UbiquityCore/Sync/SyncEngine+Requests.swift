// SPDX-License-Identifier: Apache-2.0

/// Somebody waits for a round trip: what was written before is on the server, and what the server
/// had is here.
struct SyncRequest: Hashable, Sendable {
    /// For ``SyncEngine/Effect/finishSync(id:_:)``; nil: another process asked.
    var id: Int?
    /// The keys whose answer is awaited.
    var waiting: Set<Key>
    /// The last push that was sent before; of its keys, only those in ``sent`` had what is awaited.
    var push: Int
    var sent: Set<Key>
    /// The keys whose later write on the server is awaited.
    var settling: Set<Key> = []
    /// The number of the fetch that must have finished: one that began after the request.
    var fetch: Int
    /// The number under which the disk has the request; nil: it has not.
    var number: Int64?
}

extension SyncEngine {
    /// Asks for a round trip to the server, now.
    /// - Returns: What the effect ``Effect/finishSync(id:_:)`` will name.
    package mutating func requestSync(at now: ClockReading) -> Int {
        requestsMade += 1
        let id = requestsMade
        guard isSignedIn else {
            finished.append((id, LinkFailure(.unauthorized, "this device is not signed in")))
            return id
        }
        requests.append(newRequest(id: id))
        if !isLeading { isMetaUnsaved = true }
        hurry(at: now)
        return id
    }

    private func newRequest(id: Int? = nil, number: Int64? = nil) -> SyncRequest {
        let underWay = pushInFlight?.push.transactions.flatMap(\.writes) ?? []
        let sent = underWay.filter { entries[$0.key]?.pending?.record == $0 }.map(\.key)
        return SyncRequest(
            id: id, waiting: waiting, push: pushesSent, sent: Set(sent),
            fetch: fetchesStarted + 1, number: number)
    }

    /// Takes note that the server answered to these writes, so that who goes on writing does not
    /// keep a request waiting for ever.
    mutating func noteAnswered(_ keys: Set<Key>, of push: Int) {
        let settled = keys.filter {
            guard entries[$0]?.isSettled ?? false, let settled = settledWrites[$0] else {
                return false
            }
            return settled.held != settled.write
        }
        for index in requests.indices {
            let isLater = push > requests[index].push
            let answered = requests[index].waiting.intersection(
                isLater ? keys : keys.intersection(requests[index].sent))
            requests[index].waiting.subtract(answered)
            requests[index].settling.formUnion(answered.intersection(settled))
        }
    }

    /// As leader: takes what other processes ask.
    mutating func takeRequests(from disk: StoredMeta, at now: ClockReading) {
        guard disk.syncsRequested > meta.syncsRequested else { return }
        meta.syncsRequested = disk.syncsRequested
        // At once, so that those who asked know that they were heard.
        meta.syncsTaken = disk.syncsRequested
        isMetaUnsaved = true
        requests.append(newRequest(number: disk.syncsRequested))
        hurry(at: now)
    }

    /// What the processes that follow asked of the leader that is gone, and what this one asked,
    /// is this one's to do.
    mutating func takeOverRequests() {
        // With the next save: who waits asks again.
        meta.syncsTaken = meta.syncsRequested
        for index in requests.indices {
            requests[index].fetch = fetchesStarted + 1
            requests[index].number = nil
        }
        if meta.syncsRequested > meta.syncsCompleted {
            requests.append(newRequest(number: meta.syncsRequested))
        }
    }

    /// As follower: gives the next number to the requests that have none.
    mutating func numberNewRequests(at now: ClockReading) -> Int64? {
        guard !isLeading, asksAgain || requests.contains(where: { $0.number == nil }) else {
            return nil
        }
        asksAgain = false
        meta.syncsRequested += 1
        isMetaUnsaved = true
        leaderWatch.asked(
            meta.syncsRequested, at: now.uptime, takesNote: meta.syncsTaken != nil)
        return meta.syncsRequested
    }

    /// As follower: waits no longer for a leader that does not answer.
    mutating func checkLeader(at now: ClockReading) {
        guard !isLeading, !requests.isEmpty else { return leaderWatch.rest() }
        switch leaderWatch.look(at: now.uptime, takesNote: meta.syncsTaken != nil) {
        case nil: break
        case .askAgain:
            asksAgain = true
            isMetaUnsaved = true
        case .silent:
            let reason = diskFailure.map { "the disk refuses: \($0)" } ?? Self.silence
            finishRequests(LinkFailure(.unreachable, reason)) { _ in true }
        }
    }

    private static let silence =
        "another process of this device holds the connection and does not answer"

    mutating func requestsSaved(as number: Int64, through id: Int) {
        guard !isLeading else { return }
        for index in requests.indices
        where requests[index].number == nil && requests[index].id ?? .max <= id {
            requests[index].number = number
        }
        // Those that came while the save was under way need another one.
        if requests.contains(where: { $0.number == nil }) { isMetaUnsaved = true }
    }

    /// As follower: the leader finished all requests up to a number.
    mutating func requestsAnswered(by meta: StoredMeta, at now: ClockReading) {
        guard !isLeading else { return }
        leaderWatch.heard(max(meta.syncsTaken ?? 0, meta.syncsCompleted), at: now.uptime)
        let failure = meta.syncFailure.map { LinkFailure(.unreachable, $0) }
        finishRequests(failure) { $0.number.map { $0 <= meta.syncsCompleted } ?? false }
        if requests.contains(where: { $0.number == nil }) { isMetaUnsaved = true }
    }

    /// As leader: finishes what is done.
    mutating func checkRequests() {
        guard isLeading, !requests.isEmpty else { return }
        let (waiting, fetched, entries) = (waiting, fetchesFinished, entries)
        finishRequests(nil) { request in
            request.fetch <= fetched && request.waiting.isDisjoint(with: waiting)
                && !request.settling.contains { entries[$0]?.isSettled ?? false }
        }
    }

    mutating func failRequests(_ failure: LinkFailure) {
        guard isLeading || !isSignedIn else { return }
        finishRequests(failure) { _ in true }
    }

    private mutating func finishRequests(
        _ failure: LinkFailure?, where isDone: (SyncRequest) -> Bool
    ) {
        for request in requests where isDone(request) {
            if let id = request.id { finished.append((id, failure)) }
            if isLeading, let number = request.number {
                meta.syncsCompleted = max(meta.syncsCompleted, number)
                meta.syncFailure = failure?.detail
                isMetaUnsaved = true
            }
        }
        requests.removeAll(where: isDone)
    }

    mutating func nextPull() -> Effect? {
        guard isLive, pullInFlight == nil, requests.contains(where: { $0.fetch > fetchesStarted })
        else { return nil }
        fetchesStarted += 1
        pullInFlight = fetchesStarted
        return .pull(fetchesStarted, since: meta.cursor)
    }

    /// The records are news or not; the cursor stays that of the stream, which brings them too.
    mutating func pulled(_ number: Int, _ changes: ChangeSet, at now: ClockReading) {
        guard pullInFlight == number else { return }
        pullInFlight = nil
        fetchesFinished = max(fetchesFinished, number)
        meta.link.lastSync = clock.milliseconds(at: now)
        if !changes.isWhole { post(Notice(.serverChange, merge(changes.records))) }
    }

    /// The stream is likely to be broken as well: it is opened again, which is a fetch too, and if
    /// that fails the requests do.
    mutating func pullFailed(_ number: Int, _ failure: LinkFailure, at now: ClockReading) {
        guard pullInFlight == number else { return }
        pullInFlight = nil
        guard let stream = link.stream else { return }
        streamEnded(stream, failure, at: now)
        hangUp = stream
    }
}
