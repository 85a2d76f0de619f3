// SPDX-License-Identifier: Apache-2.0

/// The streams of a node: who is told of what, in which order, and when a stream must end because
/// its subscriber would miss something.
///
/// The subscribers of a store are a group, for which a ``StoreFeed`` decides what is published as it
/// is and what must be read. A subscriber first subscribes and then reads its store; what is
/// published in between waits in its ``SendQueue``. A large event is encoded elsewhere, which takes
/// a while; the events after it wait, because they must not overtake it.
///
/// Every function returns what is to be done, in order and before anything that a later call
/// returns.
package struct StreamHub<
    Store: Hashable & Sendable, Subscriber: HubSubscriber, Event: HubEvent
>: Sendable {
    package enum Action: Sendable {
        case send(Event, to: [Subscriber])
        /// To end the streams. Their subscribers are not subscribed any more, and resume from their
        /// own cursors.
        case end([Subscriber], StreamEnd)
        /// To do what takes a while, and to report it.
        case start(Job)
    }

    package struct Job: Sendable {
        package enum Kind: Sendable {
            /// To read what was committed since then: see ``finish(_:read:at:)``.
            case read(since: Position)
            /// To encode an event: see ``finish(_:isEncoded:)``.
            case encode(Event)
        }

        package let store: Store
        package let kind: Kind
        fileprivate let group: UInt64
    }

    /// The subscribers of a store.
    private struct Group {
        /// The number of its first subscriber, which tells it from an earlier group of the same
        /// store.
        let number: UInt64
        var subscribers: [Subscriber] = []
        var feed = StoreFeed()
        /// A large event that is being encoded, and those after it.
        var unsent = FIFOQueue<Event>()
        var unsentBytes = 0
    }

    private var groups: [Store: Group] = [:]
    private var lastNumber: UInt64 = 0
    private var isClosed = false
    /// The storage's history; nil if it is not known yet.
    private var history: UInt64?
    /// Up to this number, subscribers may follow another history.
    private var lastOfOtherHistory: UInt64 = 0
    private let unsentBytesMax: Int

    /// - Parameter unsentBytesMax: The bytes of events that may wait for one store to be encoded, but
    ///   for one event.
    package init(unsentBytesMax: Int) { self.unsentBytesMax = unsentBytesMax }

    /// The stores with subscribers, in no particular order.
    package var stores: [Store] { Array(groups.keys) }

    /// Scans all subscribers, and copies only those that it returns.
    /// - Parameter isMeant: Must not use the hub.
    package func subscribers(where isMeant: (Subscriber) -> Bool) -> [Subscriber] {
        var found: [Subscriber] = []
        for group in groups.values {
            for subscriber in group.subscribers where isMeant(subscriber) {
                found.append(subscriber)
            }
        }
        return found
    }

    // MARK: - Subscribers

    /// Subscribes a subscriber to everything that is committed from now on. Call ``begin(_:at:)``
    /// when it has read the store.
    /// - Parameter make: Makes the subscriber with a number that no other one of the hub has.
    /// - Returns: Nil if the hub is closed.
    package mutating func subscribe(
        to store: Store, _ make: (_ number: UInt64) -> Subscriber
    ) -> Subscriber? {
        guard !isClosed else { return nil }
        lastNumber += 1
        let subscriber = make(lastNumber)
        groups[store, default: Group(number: lastNumber)].subscribers.append(subscriber)
        return subscriber
    }

    /// A subscriber has read the store as of this position.
    package mutating func begin(_ store: Store, at position: Position) -> [Action] {
        advance(store) { $0.begin(at: position) }
    }

    /// Does nothing if it is not subscribed any more.
    package mutating func unsubscribe(_ subscriber: Subscriber, from store: Store) {
        groups[store]?.subscribers.removeAll { $0 === subscriber }
        if groups[store]?.subscribers.isEmpty == true { groups[store] = nil }
    }

    // MARK: - Changes

    /// This node has committed a push to a store. Call in the order of the store's revisions.
    package mutating func publish(
        _ push: CommittedPush, to store: Store, as event: () -> Event
    ) -> [Action] {
        guard !push.writes.isEmpty else { return [] }
        return advance(store, event) { $0.commit(push) }
    }

    /// A hint says that a store has reached this position.
    package mutating func hear(of position: Position, in store: Store) -> [Action] {
        advance(store) { $0.hear(of: position) }
    }

    /// The changes since the requested position were read.
    /// - Parameters:
    ///   - event: The changes; nil if there are none.
    ///   - position: The store's position as read; nil if the changes could not be read, or the
    ///     store has another history.
    package mutating func finish(_ job: Job, read event: Event?, at position: Position?) -> [Action]
    {
        guard groups[job.store]?.number == job.group else { return [] }
        let actions = event.map { offer($0, to: job.store) } ?? []
        return actions + advance(job.store) { $0.finish(at: position) }
    }

    /// An event was encoded, or could not be.
    package mutating func finish(_ job: Job, isEncoded: Bool) -> [Action] {
        guard groups[job.store]?.number == job.group else { return [] }
        guard isEncoded else { return end(job.store, .overflow) }
        return sendUnsent(of: job.store, encoded: 1)
    }

    private mutating func advance(
        _ store: Store, _ event: () -> Event? = { nil },
        by advance: (inout StoreFeed) -> StoreFeed.Step
    ) -> [Action] {
        guard groups[store] != nil else { return [] }
        switch advance(&groups[store]!.feed) {
        case .nothing: return []
        case .publish: return event().map { offer($0, to: store) } ?? []
        case .read(let since): return start(.read(since: since), store)
        case .restart: return end(store, .restart)
        }
    }

    private func start(_ kind: Job.Kind, _ store: Store) -> [Action] {
        guard let group = groups[store] else { return [] }
        return [.start(Job(store: store, kind: kind, group: group.number))]
    }

    private mutating func end(_ store: Store, _ end: StreamEnd) -> [Action] {
        groups.removeValue(forKey: store).map { [.end($0.subscribers, end)] } ?? []
    }

    // MARK: - Large events

    /// Sends an event, or lets it wait until it, or one before it, is encoded. The bytes that wait
    /// are bounded as for one subscriber.
    private mutating func offer(_ event: Event, to store: Store) -> [Action] {
        guard let group = groups[store] else { return [] }
        guard event.isLarge || !group.unsent.isEmpty else {
            return [.send(event, to: group.subscribers)]
        }
        let bytes = group.unsentBytes + event.bytes
        guard group.unsent.isEmpty || bytes <= unsentBytesMax, event.reserve() else {
            return end(store, .overflow)
        }
        groups[store]?.unsent.append(event)
        groups[store]?.unsentBytes = bytes
        return group.unsent.isEmpty ? start(.encode(event), store) : []
    }

    /// Sends the waiting events up to the next one that is to be encoded.
    /// - Parameter encoded: The number of the first ones that are.
    private mutating func sendUnsent(of store: Store, encoded: Int) -> [Action] {
        var actions: [Action] = []
        var encoded = encoded
        while let event = groups[store]?.unsent.first {
            guard encoded > 0 || !event.isLarge else {
                return actions + start(.encode(event), store)
            }
            encoded -= 1
            _ = groups[store]?.unsent.popFirst()
            groups[store]?.unsentBytes -= event.bytes
            actions.append(.send(event, to: groups[store]?.subscribers ?? []))
        }
        return actions
    }

    // MARK: - All of them

    /// The storage goes on in this history. If it is another one than before, all subscribers must
    /// end, see ``StoreFeed`` and ``endOfOtherHistory(second:)``.
    package mutating func follow(_ history: UInt64?) {
        if self.history != nil, self.history != history { lastOfOtherHistory = lastNumber }
        self.history = history
    }

    /// The subscribers of another history whose turn it is to end, so that not all of a server's
    /// devices come back at once. All have had their turn within ``endingSeconds``.
    package func endOfOtherHistory(second: Int) -> [Subscriber] {
        guard lastOfOtherHistory > 0 else { return [] }
        let turn = UInt64(second) % Self.endingSeconds
        return subscribers {
            $0.number <= lastOfOtherHistory && $0.turn % Self.endingSeconds == turn
        }
    }

    package static var endingSeconds: UInt64 { 5 }

    /// Refuses new subscribers.
    package mutating func close() { isClosed = true }
}

/// A subscriber of a store.
package protocol HubSubscriber: AnyObject, Sendable {
    var number: UInt64 { get }
    /// The number that decides when it has its turn, where all have one: the same for all that share
    /// a stream.
    var turn: UInt64 { get }
}

extension HubSubscriber {
    package var turn: UInt64 { number }
}

/// Changes for the subscribers of a store.
package protocol HubEvent: Sendable {
    /// The bytes that it counts while it waits to be encoded.
    var bytes: Int { get }
    /// Whether encoding it takes so long that others would notice.
    var isLarge: Bool { get }

    /// Takes its bytes from the budget of all, until it is sent or dropped.
    /// - Returns: False if that is used up.
    func reserve() -> Bool
}

/// The reason for the end of a stream.
package enum StreamEnd: Hashable, Sendable {
    /// Events of its store were dropped, because too many waited.
    case overflow
    /// The subscribers of its store must resume from their own cursors.
    case restart
    /// The server is shutting down, the device may no longer subscribe, or the connection is gone.
    case closed
}
