// SPDX-License-Identifier: Apache-2.0

/// A request for a round trip. It is done when earlier writes are on the server and the server's
/// earlier changes are here.
struct SyncRequest: Hashable, Sendable {
    /// The ID for ``SyncEngine/Effect/finishSync(id:_:)``; nil if another process asked.
    var id: Int?
    /// The keys whose answer is awaited.
    var waiting: Set<Key>
    /// The last push sent before the request. It only answers the keys in ``sent``.
    var push: Int
    var sent: Set<Key>
    /// The keys whose write was acknowledged but not brought by the stream. If a write lost, its
    /// successor is awaited, whoever wrote it and whenever. If it must be sent again, its answer is
    /// awaited again.
    var acknowledging: Set<Key>
    /// The keys whose write the server refused.
    var refused: Set<Key> = []
    var refusal = ""
    /// The reason a write is held back, see ``TooLarge``, which is not awaited any more.
    var held: LinkFailure?
    /// The number of the fetch that must have finished, which began after the request.
    var fetch: Int
    /// The numbers of the request on disk; nil if it is not there yet.
    var numbers: ClosedRange<Int64>?
}

extension SyncRequest {
    /// The reason the round trip fails although the server responded; nil if it does not fail.
    var failure: LinkFailure? {
        refused.isEmpty ? held : LinkFailure(.refused, refusal, refusedKeys: refused)
    }
}

extension SyncEngine {
    /// Requests a round trip to the server.
    /// - Returns: The ID for the effect ``Effect/finishSync(id:_:)``.
    package mutating func requestSync(at now: ClockReading) -> Int {
        counts.requests += 1
        let id = counts.requests
        guard isSignedIn else {
            finished.append((id, LinkFailure(.unauthorized, "this device is not signed in")))
            return id
        }
        requests.append(newRequest(id: id))
        if !isLeading { unsaved.meta = true }
        hurry(at: now)
        noteHeld(at: now)
        return id
    }

    private func newRequest(
        id: Int? = nil, numbers: ClosedRange<Int64>? = nil
    ) -> SyncRequest {
        let underWay = pushInFlight?.push.transactions.flatMap { $0.writes } ?? []
        let sent = underWay.filter { entries[$0.key]?.pending?.record == $0 }.map { $0.key }
        return SyncRequest(
            id: id, waiting: waiting, push: counts.pushes, sent: Set(sent),
            acknowledging: Set(outbox.acknowledged.keys.filter { isAcknowledged($0) }),
            fetch: counts.fetches + 1,
            numbers: numbers)
    }

    /// Takes note that the server answered these writes. A caller that keeps writing does not delay
    /// a request for ever.
    /// - Parameter refused: The refused writes and the reasons. If the app has replaced such a
    ///   write meanwhile, which the server never had, the replacement is awaited.
    mutating func noteAnswered(_ keys: Set<Key>, refused: [Key: Refusal], of push: Int) {
        let replaced = Set(refused.keys.filter { entries[$0]?.waits ?? false })
        let acknowledged = keys.filter { isAcknowledged($0) }
        let lost = acknowledged.filter { hasLost($0) }
        for index in requests.indices {
            let isLater = push > requests[index].push
            let answered = requests[index].waiting.intersection(
                isLater ? keys : keys.intersection(requests[index].sent)
            ).subtracting(replaced)
            requests[index].waiting.subtract(answered)
            requests[index].acknowledging.formUnion(answered.intersection(acknowledged).union(lost))
            note(refused.filter { answered.contains($0.key) }, of: index)
        }
    }

    /// Writes that were too large wait on, and the requests for them fail when all others are done.
    mutating func noteHeld() {
        guard let tooLarge = outbox.tooLarge, tooLarge.retry != nil else { return }
        let held = heldWrites
        for index in requests.indices where !requests[index].waiting.isDisjoint(with: held) {
            requests[index].waiting.subtract(held)
            requests[index].held = tooLarge.failure
        }
    }

    func isAcknowledged(_ key: Key) -> Bool { entries[key]?.isAcknowledged ?? false }

    /// Whether the server holds a later write than the acknowledged one.
    private func hasLost(_ key: Key) -> Bool {
        isAcknowledged(key) && outbox.acknowledged[key].map { $0.held != $0.write } ?? false
    }

    /// As follower: the leader has withdrawn a write, perhaps before it knew of a request for it.
    mutating func noteWithdrawn(_ key: Key) {
        for index in requests.indices where requests[index].waiting.contains(key) {
            requests[index].refused.insert(key.whole)
            requests[index].refusal = "the server refused the write of \"\(key.whole)\""
        }
    }

    /// Tells followers of a failure at once, because another process may lead when the request
    /// finishes.
    private mutating func note(_ refused: [Key: Refusal], of index: Int) {
        guard let first = refused.min(by: { $0.key < $1.key }) else { return }
        requests[index].refused.formUnion(refused.keys.map { $0.whole })
        requests[index].refusal = first.value.detail
        if isLeading, let failure = requests[index].failure { note(failure, of: index) }
    }

    private mutating func note(_ failure: LinkFailure, of index: Int) {
        guard let numbers = requests[index].numbers else { return }
        meta.syncFailures.removeAll { $0.numbers == numbers }
        meta.syncFailures.append(SyncFailure(numbers, failure))
        meta.syncFailures.removeFirst(max(0, meta.syncFailures.count - SyncFailure.countMax))
        unsaved.meta = true
    }

    /// The acknowledged write is sent again, so its answer is awaited again.
    mutating func awaitAgain(_ key: Key) {
        for index in requests.indices where requests[index].acknowledging.remove(key) != nil {
            requests[index].waiting.insert(key)
        }
    }

    /// As leader: takes the requests of other processes.
    mutating func takeRequests(from disk: StoredMeta, at now: ClockReading) {
        guard disk.syncsRequested > meta.syncsRequested else { return }
        let numbers = meta.syncsRequested + 1...disk.syncsRequested
        meta.syncsRequested = disk.syncsRequested
        // Recorded at once, so that the followers know that they were heard.
        meta.syncsTaken = disk.syncsRequested
        unsaved.meta = true
        requests.append(newRequest(numbers: numbers))
        hurry(at: now)
        noteHeld(at: now)
    }

    /// Does not wait for a transaction that was too large a moment ago, and is not retried yet.
    private mutating func noteHeld(at now: ClockReading) {
        guard isLeading, let retry = outbox.tooLarge?.retry, retry.at > now.uptime else { return }
        noteHeld()
    }

    /// Takes over the requests that followers made of the previous leader, including this process's
    /// own.
    mutating func takeOverRequests() {
        // Recorded with the next save; the followers ask again.
        meta.syncsTaken = meta.syncsRequested
        // What this process took over when it led before is in what it takes now.
        requests.removeAll { $0.id == nil }
        for index in requests.indices {
            requests[index].fetch = counts.fetches + 1
            requests[index].numbers = nil
        }
        if meta.syncsRequested > meta.syncsCompleted {
            requests.append(newRequest(numbers: meta.syncsCompleted + 1...meta.syncsRequested))
        }
    }

    /// Whether a request is not on disk yet.
    private var hasNewRequests: Bool { requests.contains { $0.numbers == nil } }

    /// As follower: gives the next number to new requests.
    mutating func numberNewRequests(at now: ClockReading) -> Int64? {
        guard let leader, leader.asksAgain || hasNewRequests else { return nil }
        meta.syncsRequested += 1
        unsaved.meta = true
        self.leader?.asked(meta.syncsRequested, at: now.uptime)
        return meta.syncsRequested
    }

    /// As follower: stops waiting for a leader that does not respond.
    mutating func checkLeader(at now: ClockReading) {
        if requests.isEmpty { leader?.rest() }
        switch leader?.look(at: now.uptime) {
        case nil: break
        case .askAgain: unsaved.meta = true
        case .silent:
            let reason = diskFailure.map { "the disk failed: \($0)" } ?? Self.silence
            finishRequests { _ in .some(LinkFailure(.unreachable, reason)) }
        }
    }

    private static let silence =
        "another process of this device holds the connection and does not respond"

    mutating func requestsSaved(as number: Int64, through id: Int) {
        guard !isLeading else { return }
        leader?.asksAgain = false
        for index in requests.indices
        where requests[index].numbers == nil && requests[index].id ?? .max <= id {
            requests[index].numbers = number...number
        }
        // Requests made during the save need another one.
        if hasNewRequests { unsaved.meta = true }
    }

    /// As follower: the leader has finished all requests up to a number.
    mutating func requestsAnswered(by meta: StoredMeta, at now: ClockReading) {
        guard !isLeading else { return }
        leader?.heard(max(meta.syncsTaken, meta.syncsCompleted), at: now.uptime)
        finishRequests { request in
            guard let numbers = request.numbers, numbers.upperBound <= meta.syncsCompleted
            else { return nil }
            let failure = meta.syncFailures.last { $0.numbers.overlaps(numbers) }
            return .some(failure?.failure)
        }
        if leader?.asksAgain ?? false || hasNewRequests { unsaved.meta = true }
    }

    /// As leader: finishes the requests that are done.
    mutating func checkRequests() {
        guard isLeading, !requests.isEmpty else { return }
        let (waiting, fetched) = (waiting, counts.fetchesFinished)
        let lost = Set(outbox.acknowledged.keys.filter { hasLost($0) })
        finishRequests { request in
            let isDone =
                request.fetch <= fetched && request.waiting.isDisjoint(with: waiting)
                && request.acknowledging.isDisjoint(with: lost)
            return isDone ? .some(nil) : nil
        }
    }

    mutating func failRequests(_ failure: LinkFailure) {
        guard isLeading || !isSignedIn else { return }
        finishRequests { _ in .some(failure) }
    }

    /// - Parameter outcome: Nil if a request is not done; otherwise its failure, or none on
    ///   success.
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
            unsaved.meta = true
            if let failure { note(failure, of: index) }
        }
        requests = left
    }
}
