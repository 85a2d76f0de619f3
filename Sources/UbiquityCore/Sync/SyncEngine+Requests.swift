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
    /// The keys whose write was answered and not brought. One that lost is awaited until its successor
    /// is here, whoever wrote it and when; one that is to be sent again is awaited anew.
    var settling: Set<Key>
    /// The keys whose write the server refused, and why.
    var refused: Set<Key> = []
    var refusal = ""
    /// The number of the fetch that must have finished: one that began after the request.
    var fetch: Int
    /// The numbers under which the disk has the request; nil: it has not.
    var numbers: ClosedRange<Int64>?
}

extension SyncRequest {
    /// Why the round trip fails although the server was reached; nil: it does not.
    var failure: LinkFailure? {
        refused.isEmpty ? nil : LinkFailure(.refused, refusal, refusedKeys: refused)
    }
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

    private func newRequest(
        id: Int? = nil, numbers: ClosedRange<Int64>? = nil
    ) -> SyncRequest {
        let underWay = pushInFlight?.push.transactions.flatMap(\.writes) ?? []
        let sent = underWay.filter { entries[$0.key]?.pending?.record == $0 }.map(\.key)
        return SyncRequest(
            id: id, waiting: waiting, push: pushesSent, sent: Set(sent),
            settling: Set(settledWrites.keys.filter(isSettled)), fetch: fetchesStarted + 1,
            numbers: numbers)
    }

    /// Takes note that the server answered to these writes, so that who goes on writing does not
    /// keep a request waiting for ever.
    /// - Parameter refused: Those that it refused, and why. Where the app has replaced a write
    ///   meanwhile, which the server never had, its successor is waited for.
    mutating func noteAnswered(_ keys: Set<Key>, refused: [Key: Refusal], of push: Int) {
        let replaced = Set(refused.keys.filter { entries[$0]?.waits ?? false })
        let settled = keys.filter(isSettled)
        let lost = settled.filter(hasLost)
        for index in requests.indices {
            let isLater = push > requests[index].push
            let answered = requests[index].waiting.intersection(
                isLater ? keys : keys.intersection(requests[index].sent)
            ).subtracting(replaced)
            requests[index].waiting.subtract(answered)
            requests[index].settling.formUnion(answered.intersection(settled).union(lost))
            note(refused.filter { answered.contains($0.key) }, of: index)
        }
    }

    private func isSettled(_ key: Key) -> Bool { entries[key]?.isSettled ?? false }

    /// Whether the server holds another write than the settled one.
    private func hasLost(_ key: Key) -> Bool {
        isSettled(key) && settledWrites[key].map { $0.held != $0.write } ?? false
    }

    /// As follower: the leader has withdrawn a write, perhaps before it knew of a request for it.
    mutating func noteWithdrawn(_ key: Key) {
        for index in requests.indices where requests[index].waiting.contains(key) {
            requests[index].refused.insert(key.whole)
            requests[index].refusal = "the server refused the write of \"\(key.whole)\""
        }
    }

    /// For processes that follow at once: who leads when the request is done may be another one.
    private mutating func note(_ refused: [Key: Refusal], of index: Int) {
        guard let first = refused.min(by: { $0.key < $1.key }) else { return }
        requests[index].refused.formUnion(refused.keys.map(\.whole))
        requests[index].refusal = first.value.detail
        if isLeading, let failure = requests[index].failure { note(failure, of: index) }
    }

    private mutating func note(_ failure: LinkFailure, of index: Int) {
        guard let numbers = requests[index].numbers else { return }
        meta.syncFailures.removeAll { $0.numbers == numbers }
        meta.syncFailures.append(SyncFailure(numbers, failure))
        meta.syncFailures.removeFirst(max(0, meta.syncFailures.count - SyncFailure.countMax))
        isMetaUnsaved = true
    }

    /// What was awaited of the stream is sent again.
    mutating func awaitAgain(_ key: Key) {
        for index in requests.indices where requests[index].settling.remove(key) != nil {
            requests[index].waiting.insert(key)
        }
    }

    /// As leader: takes what other processes ask.
    mutating func takeRequests(from disk: StoredMeta, at now: ClockReading) {
        guard disk.syncsRequested > meta.syncsRequested else { return }
        let numbers = meta.syncsRequested + 1...disk.syncsRequested
        meta.syncsRequested = disk.syncsRequested
        // At once, so that those who asked know that they were heard.
        meta.syncsTaken = disk.syncsRequested
        isMetaUnsaved = true
        requests.append(newRequest(numbers: numbers))
        hurry(at: now)
    }

    /// What the processes that follow asked of the leader that is gone, and what this one asked,
    /// is this one's to do.
    mutating func takeOverRequests() {
        // With the next save: who waits asks again.
        meta.syncsTaken = meta.syncsRequested
        for index in requests.indices {
            requests[index].fetch = fetchesStarted + 1
            requests[index].numbers = nil
        }
        if meta.syncsRequested > meta.syncsCompleted {
            requests.append(newRequest(numbers: meta.syncsCompleted + 1...meta.syncsRequested))
        }
    }

    /// As follower: gives the next number to the requests that have none.
    mutating func numberNewRequests(at now: ClockReading) -> Int64? {
        guard !isLeading, asksAgain || requests.contains(where: { $0.numbers == nil }) else {
            return nil
        }
        meta.syncsRequested += 1
        isMetaUnsaved = true
        leaderWatch.asked(
            meta.syncsRequested, at: now.uptime, takesNote: meta.syncsTaken != nil)
        return meta.syncsRequested
    }

    /// As follower: waits no longer for a leader that does not answer.
    mutating func checkLeader(at now: ClockReading) {
        guard !isLeading, !requests.isEmpty else {
            asksAgain = false
            return leaderWatch.rest()
        }
        switch leaderWatch.look(at: now.uptime, takesNote: meta.syncsTaken != nil) {
        case nil: break
        case .askAgain:
            asksAgain = true
            isMetaUnsaved = true
        case .silent:
            let reason = diskFailure.map { "the disk refuses: \($0)" } ?? Self.silence
            finishRequests { _ in .some(LinkFailure(.unreachable, reason)) }
        }
    }

    private static let silence =
        "another process of this device holds the connection and does not answer"

    mutating func requestsSaved(as number: Int64, through id: Int) {
        guard !isLeading else { return }
        asksAgain = false
        for index in requests.indices
        where requests[index].numbers == nil && requests[index].id ?? .max <= id {
            requests[index].numbers = number...number
        }
        // Those that came while the save was under way need another one.
        if requests.contains(where: { $0.numbers == nil }) { isMetaUnsaved = true }
    }

    /// As follower: the leader finished all requests up to a number.
    mutating func requestsAnswered(by meta: StoredMeta, at now: ClockReading) {
        guard !isLeading else { return }
        leaderWatch.heard(max(meta.syncsTaken ?? 0, meta.syncsCompleted), at: now.uptime)
        finishRequests { request in
            guard let numbers = request.numbers, numbers.upperBound <= meta.syncsCompleted
            else { return nil }
            let failure = meta.syncFailures.last { $0.numbers.overlaps(numbers) }
            return .some(failure?.failure)
        }
        if asksAgain || requests.contains(where: { $0.numbers == nil }) { isMetaUnsaved = true }
    }

    /// As leader: finishes what is done.
    mutating func checkRequests() {
        guard isLeading, !requests.isEmpty else { return }
        let (waiting, fetched) = (waiting, fetchesFinished)
        let lost = Set(settledWrites.keys.filter(hasLost))
        finishRequests { request in
            let isDone =
                request.fetch <= fetched && request.waiting.isDisjoint(with: waiting)
                && request.settling.isDisjoint(with: lost)
            return isDone ? .some(nil) : nil
        }
    }

    mutating func failRequests(_ failure: LinkFailure) {
        guard isLeading || !isSignedIn else { return }
        finishRequests { _ in .some(failure) }
    }

    /// - Parameter outcome: Nil: it is not done; else why it failed, or that it did not.
    private mutating func finishRequests(_ outcome: (SyncRequest) -> LinkFailure??) {
        var left: [SyncRequest] = []
        for (index, request) in requests.enumerated() {
            guard let outcome = outcome(request) else {
                left.append(request)
                continue
            }
            let failure = request.failure ?? outcome
            if let id = request.id { finished.append((id, failure)) }
            guard isLeading, let numbers = request.numbers else { continue }
            meta.syncsCompleted = max(meta.syncsCompleted, numbers.upperBound)
            isMetaUnsaved = true
            if let failure { note(failure, of: index) }
        }
        requests = left
    }

}
