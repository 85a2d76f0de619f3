// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// The streams of a node. ``StoreFeed`` decides when they are sent what was committed, by this node
/// or others.
final class VirtualHub {
    private unowned let node: VirtualNode
    /// Whether other nodes write to the database.
    private let isShared: Bool
    private var groups: [StoreReference: Group] = [:]
    private var lastGroup = 0
    /// Whether a comparison is due.
    private var isComparing = false
    /// The database's history that the streams belong to.
    private var history: DatabaseHistory

    /// The streams of a store.
    private final class Group {
        /// Distinguishes it from an earlier group of the same store.
        let number: Int
        var subscribers: [Subscriber] = []
        var feed = StoreFeed()

        init(number: Int) { self.number = number }
    }

    /// A subscribed stream. Commits wait until it has read the store.
    private final class Subscriber {
        let stream: VirtualStream
        var start: StreamStart?
        var waiting: [ChangeSet] = []

        init(_ stream: VirtualStream) { self.stream = stream }

        func offer(_ changes: ChangeSet) {
            guard let start else { return waiting.append(changes) }
            guard start.isNews(Position(changes.cursor)?.revision ?? 0) else { return }
            stream.send(.changes(changes))
        }

        /// - Parameter isResumed: Whether the device named a cursor. If not, the changes are the whole
        ///   store.
        func begin(with changes: ChangeSet, isResumed: Bool, _ config: ServerConfig) {
            start = StreamStart(changes.cursor)
            if !isResumed || !changes.records.isEmpty { stream.send(.changes(changes)) }
            stream.send(.ready(changes.cursor, config))
            for changes in waiting { offer(changes) }
            waiting = []
        }
    }

    /// The interval at which the positions of stores with streams are compared, since hints may be
    /// lost.
    private static let comparisonMilliseconds: Int64 = 4_000

    init(node: VirtualNode, isShared: Bool) {
        self.node = node
        self.isShared = isShared
        history = node.database.name
    }

    private var world: any VirtualWorld { node.world }

    // MARK: - Streams

    func subscribe(_ stream: VirtualStream, since cursor: Cursor?, isSaved: Bool) {
        let subscriber = Subscriber(stream)
        if groups[stream.store] == nil {
            lastGroup += 1
            groups[stream.store] = Group(number: lastGroup)
        }
        groups[stream.store]?.subscribers.append(subscriber)
        node.after(node.flight) { [self] in
            if isSubscribed(stream) { begin(subscriber, since: cursor, isSaved) }
        }
    }

    private func begin(_ subscriber: Subscriber, since cursor: Cursor?, _ isSaved: Bool) {
        let stream = subscriber.stream
        do throws(LinkFailure) {
            let changes = try node.read(
                stream.store, since: cursor, isSaved: isSaved, by: stream.device)
            let config = node.config
            func begin() {
                subscriber.begin(with: changes, isResumed: cursor != nil, config)
                guard let position = Position(changes.cursor) else { return }
                advance(stream.store) { $0.begin(at: position) }
                compareSoon()
            }
            guard isShared else { return begin() }
            node.after(node.flight) { [self] in if isSubscribed(stream) { begin() } }
        } catch {
            unsubscribe(stream)
            stream.breakOff(error)
        }
    }

    private func isSubscribed(_ stream: VirtualStream) -> Bool {
        groups[stream.store]?.subscribers.contains { $0.stream === stream } ?? false
    }

    func unsubscribe(_ stream: VirtualStream) {
        guard let group = groups[stream.store] else { return }
        group.subscribers.removeAll { $0.stream === stream }
        if group.subscribers.isEmpty { groups[stream.store] = nil }
    }

    func streamCount(of account: Int) -> Int {
        groups.reduce(0) { $0 + ($1.key.account == account ? $1.value.subscribers.count : 0) }
    }

    var streams: [VirtualStream] { groups.values.flatMap(\.subscribers).map(\.stream) }

    private var stores: [StoreReference] {
        groups.keys.sorted { ($0.account, $0.store) < ($1.account, $1.store) }
    }

    /// The node has ended.
    func lose() {
        let all = stores.flatMap { groups[$0]?.subscribers ?? [] }.map(\.stream)
        groups = [:]
        isComparing = false
        for stream in all { stream.lose() }
    }

    func goSilent() {
        for stream in streams.sorted(by: { $0.id < $1.id }) { stream.goSilent() }
    }

    // MARK: - Changes

    /// The node has committed a push that changes something.
    func publish(_ push: CommittedPush, of store: StoreReference) {
        advance(store, push.changes) { $0.commit(push) }
    }

    func hear(of position: Position, in store: StoreReference) {
        advance(store) { $0.hear(of: position) }
    }

    /// - Parameter changes: What to publish if the step says so.
    private func advance(
        _ store: StoreReference, _ changes: ChangeSet? = nil,
        by event: (inout StoreFeed) -> StoreFeed.Step
    ) {
        guard let group = groups[store] else { return }
        switch event(&group.feed) {
        case .nothing: break
        case .publish: if let changes { offer(changes, to: group) }
        case .read(let position): read(store, since: position, for: group.number)
        case .restart: end(store)
        }
    }

    private func end(_ store: StoreReference) {
        for subscriber in groups.removeValue(forKey: store)?.subscribers ?? [] {
            subscriber.stream.breakOff(nil)
        }
    }

    private func offer(_ changes: ChangeSet, to group: Group) {
        for subscriber in group.subscribers { subscriber.offer(changes) }
    }

    /// Reads what others committed. It takes a while until the database does so, and until the
    /// answer is here.
    private func read(_ store: StoreReference, since position: Position, for group: Int) {
        node.after(node.flight) { [self] in
            let changes = try? node.changes(of: store, since: position.cursor)
            node.after(node.flight) { [self] in
                guard let current = groups[store], current.number == group else { return }
                if let changes, !changes.records.isEmpty { offer(changes, to: current) }
                let position = (changes?.cursor).flatMap { Position($0) }
                advance(store) { $0.finish(at: position) }
            }
        }
    }

    // MARK: - Comparisons

    /// Compares positions at the next occasion. There is one every few seconds; those at which
    /// nothing can have changed are left out, since they would only take up steps.
    func compareSoon() {
        guard isShared, !isComparing else { return }
        if groups.isEmpty { return history = node.database.name }
        isComparing = true
        let interval = Self.comparisonMilliseconds
        node.after(interval - world.now % interval) { [self] in
            isComparing = false
            compare()
        }
    }

    private func compare() {
        guard node.database.isRunning else { return compareSoon() }
        let history = node.database.name
        let positions = stores.map { ($0, node.database.position(of: $0)) }
        node.after(node.flight) { [self] in
            if history != self.history { return follow(history) }
            for (store, position) in positions {
                if let feed = groups[store]?.feed, feed.published != position { compareSoon() }
                advance(store) { $0.hear(of: position) }
            }
        }
    }

    /// The database goes on in another history, see ``StoreFeed``.
    private func follow(_ history: DatabaseHistory) {
        self.history = history
        for store in stores { end(store) }
    }
}
