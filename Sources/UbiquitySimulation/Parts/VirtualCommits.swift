// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// The commits of a node: carries out ``PushQueue`` and ``GroupCommit`` in virtual time.
final class VirtualCommits {
    typealias Outcome = Result<CommittedPush, LinkFailure>

    /// A push that waits for its answer.
    struct Waiting: Sendable {
        let number: Int
        let push: Push
        let device: DeviceID
    }

    private typealias Queue = PushQueue<StoreReference, Waiting>

    /// A lane's group.
    private final class Group {
        let lane: Int
        let pushes: [Queue.Waiting]
        var commit: GroupCommit<StoreReference, Outcome>
        /// The number of the attempt. What belongs to an earlier one is ignored.
        var attempt = 0
        /// Whether the attempt is in the database, which has not answered.
        var isCommitted = false

        init(_ pushes: [Queue.Waiting], lane: Int) {
            (self.pushes, self.lane) = (pushes, lane)
            commit = GroupCommit(of: pushes.map(\.store), patience: VirtualCommits.patience)
        }

        /// The pushes of the current part.
        var part: [Queue.Waiting] { commit.part?.pushes.map { pushes[$0] } ?? [] }
    }

    private unowned let node: VirtualNode
    private let isShared: Bool
    private var queue: Queue
    /// The groups under way, by their lane.
    private var groups: [Int: Group] = [:]
    private var lastNumber = 0
    private var replies: [Int: (Outcome) -> Void] = [:]
    /// Whether commits under way go on while the node is stopped.
    private var isSent = false
    /// The disk refuses the next commit.
    var refusesNext = false

    /// The time for which a group whose connection was lost is retried.
    private static let patience: Int64 = 5_000

    init(node: VirtualNode, isShared: Bool) {
        (self.node, self.isShared) = (node, isShared)
        queue = Self.queue(isShared)
    }

    private static func queue(_ isShared: Bool) -> Queue {
        // So few that it is full now and then.
        Queue(lanes: isShared ? 2 : 1, countMax: 12, bytesMax: 64 << 20)
    }

    private var world: any VirtualWorld { node.world }

    /// - Parameter reply: Called once the push is durable, or will never be, unless the node ends.
    func commit(
        _ push: Push, to store: StoreReference, by device: DeviceID,
        reply: @escaping (Outcome) -> Void
    ) {
        lastNumber += 1
        let waiting = Queue.Waiting(
            account: UInt64(store.account), store: store, bytes: push.bytes,
            searches: push.transactions.contains { !$0.unkept.isEmpty },
            push: Waiting(number: lastNumber, push: push, device: device))
        replies[lastNumber] = reply
        switch queue.add(waiting) {
        case .refused: answer(waiting, .failure(VirtualNode.noDatabase))
        case .waits: break
        case .begins(let lane): begin(lane)
        }
    }

    private func answer(_ waiting: Queue.Waiting, _ outcome: Outcome) {
        replies.removeValue(forKey: waiting.push.number)?(outcome)
    }

    /// The replies to pushes that wait or are being committed, the oldest first.
    private var unanswered: [(Outcome) -> Void] {
        replies.sorted { $0.key < $1.key }.map(\.value)
    }

    // MARK: - Groups

    private func begin(_ lane: Int) {
        let group = Group(queue.takeGroup(of: lane), lane: lane)
        groups[lane] = group
        attempt(group)
    }

    private func attempt(_ group: Group) {
        group.attempt += 1
        let attempt = group.attempt
        node.after(node.flight + node.slowness, evenStopped: true) { [self] in
            guard attempt == group.attempt else { return }
            // What was not sent before the stop has to begin anew: the database has ended the
            // transaction.
            guard !node.isStopped || isSent else {
                return node.whenAwake { [self] in
                    if attempt == group.attempt { fail(group, isInDoubt: false) }
                }
            }
            if isShared { commitShared(group) } else { finish(group, decide(group)) }
        }
    }

    /// - Returns: The results of the current part, which is on stable storage.
    private func decide(_ group: Group) -> [Outcome] {
        defer { refusesNext = false }
        // Nothing of the group was stored.
        let refusal = LinkFailure(.busy(retryAfterMilliseconds: 5_000), "disk")
        return group.part.map {
            refusesNext ? .failure(refusal) : node.commit($0.push.push, to: $0.store)
        }
    }

    /// The database has the commit, and answers when it is durable.
    private func commitShared(_ group: Group) {
        let stores = Set(group.part.map(\.store))
        guard node.mayCommit(to: stores) else { return fail(group, isInDoubt: false) }
        guard stores.isDisjoint(with: node.database.lockedStores) else {
            return fail(group, isInDoubt: false, mayBeOfOneStore: true)
        }
        let results = decide(group)
        group.isCommitted = true
        let attempt = group.attempt
        node.database.replicate { [self] in
            node.after(node.flight) { [self] in
                if attempt == group.attempt { finish(group, results) }
            }
        }
        node.compareAllSoon()
    }

    /// A part of the group is durable.
    private func finish(_ group: Group, _ results: [Outcome]) {
        let mayBeRepeated = group.commit.part?.mayBeRepeated ?? false
        for (waiting, result) in zip(group.part, results) {
            guard isShared, let push = try? result.get() else { continue }
            // This node has not published what an earlier attempt committed.
            if mayBeRepeated { node.hub.hear(of: push.position, in: waiting.store) }
            if mayBeRepeated || !push.writes.isEmpty {
                node.announce(push.position, of: waiting.store)
            }
        }
        group.commit.committed(results)
        proceed(group)
    }

    private func fail(_ group: Group, isInDoubt: Bool, mayBeOfOneStore: Bool = false) {
        group.isCommitted = false
        let failure = CommitFailure(
            isTransient: !world.chance.perMille(30), isInDoubt: isInDoubt,
            mayBeOfOneStore: mayBeOfOneStore)
        guard let pause = group.commit.failed(failure, now: world.now) else {
            group.commit.giveUp(.failure(VirtualNode.noDatabase))
            return proceed(group)
        }
        group.attempt += 1
        let attempt = group.attempt
        node.after(world.chance.int64(pause / 2...pause)) { [self] in
            if attempt == group.attempt { self.attempt(group) }
        }
    }

    private func proceed(_ group: Group) {
        group.isCommitted = false
        group.attempt += 1
        guard group.commit.part == nil else { return attempt(group) }
        // As the server does: the events before the answers.
        let results = Array(zip(group.pushes, group.commit.results))
        for (waiting, result) in results {
            if let push = try? result.get() { node.hub.publish(push, of: waiting.store) }
        }
        groups[group.lane] = nil
        for (waiting, result) in results { answer(waiting, result) }
        if queue.finish(lane: group.lane) { begin(group.lane) }
    }

    // MARK: - Faults

    private var underWay: [Group] { groups.sorted { $0.key < $1.key }.map(\.value) }

    /// The database has stopped, or another one has taken its place. What is under way was committed,
    /// or was not.
    func loseConnection() {
        for group in underWay {
            group.attempt += 1
            let attempt = group.attempt
            node.whenAwake { [self] in
                if attempt == group.attempt { fail(group, isInDoubt: true) }
            }
        }
    }

    /// The node is stopped, and answers nobody.
    func stop() {
        isSent = world.chance.coin()
        for reply in unanswered { node.timeOut(reply) }
    }

    /// The node ends. What is under way is on stable storage or is not; nobody is told.
    func crash() {
        for group in underWay where !group.isCommitted && world.chance.coin() {
            guard node.database.isRunning || !isShared else { continue }
            for waiting in group.part { _ = node.commit(waiting.push.push, to: waiting.store) }
            guard isShared else { continue }
            node.database.replicate {}
            node.compareAllSoon()
        }
        for group in underWay { group.attempt += 1 }
        let lost = unanswered
        (queue, groups, replies) = (Self.queue(isShared), [:], [:])
        for reply in lost { reply(.failure(LinkFailure(.unreachable, "reset"))) }
    }
}
