// SPDX-License-Identifier: Apache-2.0

/// The stream that a process's stores share: which of them a connection serves, and when it is
/// replaced by another one.
///
/// A store cannot be added to an open stream. So a store that begins to listen has the stream
/// replaced by one for all, as soon as all on it are up to date, or after a while; each of the others
/// goes on where the last message left it, and does not notice. A process that opens many stores at
/// once waits for them for a moment. A store that stops listening stays on the stream, unheard,
/// until it is next replaced or nobody listens.
package struct SharedStream: Hashable, Sendable {
    /// One store's listening; never used twice.
    package struct Listener: Hashable, Sendable {
        package var number: Int
        package var store: StoreIdentifier

        package init(_ number: Int, to store: StoreIdentifier) {
            (self.number, self.store) = (number, store)
        }
    }

    /// From where a store listens.
    package struct Place: Hashable, Sendable {
        package var store: StoreIdentifier
        /// Nil for the whole store.
        package var since: Cursor?
        /// Whether everything up to the cursor is on disk.
        package var isSaved: Bool
    }

    package enum Action: Hashable, Sendable {
        /// Opens a connection with this number for these stores, the first that listened first.
        case open(Int, [Place])
        /// Ends that connection. What it still brings is ignored.
        case close(Int)
        case deliver(StreamMessage, to: Listener)
        /// The last for this listener.
        case end(Listener, LinkFailure?)
    }

    /// The pause before a stream is replaced, for other stores that are about to be opened, in
    /// milliseconds.
    package static let gatheringMilliseconds: Int64 = 50
    /// How long a store waits for those of the stream that are not up to date, in milliseconds. It
    /// polls while it waits longer than ``ConnectingStream/patienceMilliseconds``.
    package static let patienceMilliseconds: Int64 = 5_000
    /// The maximum number of stores of one connection. Another one waits, and polls.
    package static let storesMax = 64

    private struct Member: Hashable {
        var listener: Listener
        var place: Place
        /// The number of the connection that serves it; nil while it waits for one.
        var connection: Int?
        /// Whether it has everything that the server had when its connection was opened.
        var isReady = false
        /// Since when it waits; nil while it has a connection.
        var waitingSince: Int64?
    }

    /// In the order in which they began.
    private var members: [Member] = []
    /// One, unless the server has no stream for several stores.
    private var connections: [Int] = []
    private var isShared = true
    private var lastNumber = 0
    private var actions: [Action] = []

    package init() {}

    // MARK: - Listeners

    package mutating func listen(
        _ listener: Listener, since cursor: Cursor?, isSaved: Bool, at now: Int64
    ) {
        // A process has one listener for a store.
        for member in members where member.listener.store == listener.store {
            end(member.listener, LinkFailure(.unreachable, "another stream of the store has begun"))
        }
        let place = Place(store: listener.store, since: cursor, isSaved: isSaved)
        members.append(Member(listener: listener, place: place, waitingSince: now))
    }

    /// Nothing more is delivered, and there is no end.
    package mutating func hangUp(_ listener: Listener) {
        remove(listener)
        actions.removeAll { action in
            switch action {
            case .deliver(_, to: listener), .end(listener, _): true
            default: false
            }
        }
    }

    // MARK: - Connections

    /// A message of a connection for one of its stores.
    package mutating func received(
        _ message: StreamMessage, for store: StoreIdentifier, on number: Int
    ) {
        guard let index = index(of: store, on: number) else { return }
        switch message {
        case .progress, .resync: break
        case .changes(let changes): moved(index, to: changes.cursor)
        case .ready(let cursor, _):
            moved(index, to: cursor)
            members[index].isReady = true
        }
        actions.append(.deliver(message, to: members[index].listener))
    }

    /// A connection has brought bytes, but no message.
    package mutating func progressed(on number: Int) {
        for member in members where member.connection == number {
            actions.append(.deliver(.progress, to: member.listener))
        }
    }

    /// A connection goes on without this store.
    package mutating func ended(_ store: StoreIdentifier, on number: Int, _ failure: LinkFailure) {
        guard let index = index(of: store, on: number) else { return }
        end(members[index].listener, failure)
    }

    /// A connection has ended, with all of its stores; nil if the server ended it normally.
    package mutating func ended(_ number: Int, _ failure: LinkFailure?) {
        guard connections.contains(number) else { return }
        connections.removeAll { $0 == number }
        for member in members where member.connection == number { end(member.listener, failure) }
    }

    /// The server has no stream for several stores, which a connection was opened for: each gets a
    /// connection of its own from now on.
    package mutating func isUnknown(to number: Int, at now: Int64) {
        guard connections.contains(number) else { return }
        connections.removeAll { $0 == number }
        isShared = false
        for index in members.indices where members[index].connection == number {
            (members[index].connection, members[index].waitingSince) = (nil, now)
        }
    }

    /// The next action; nil if there is none until something happens, or until ``wake``.
    package mutating func next(at now: Int64) -> Action? {
        if actions.isEmpty, let wake, wake <= now {
            if isShared { replace() } else { openNext() }
        }
        return actions.isEmpty ? nil : actions.removeFirst()
    }

    /// The uptime at which a connection is opened; nil if none is to be.
    package var wake: Int64? {
        guard let first = members.compactMap(\.waitingSince).min() else { return nil }
        guard isShared, !connections.isEmpty else { return first }
        let served = members.filter { $0.connection != nil }
        guard served.count < Self.storesMax else { return nil }
        return first
            + (served.allSatisfy(\.isReady)
                ? Self.gatheringMilliseconds : Self.patienceMilliseconds)
    }

    private mutating func replace() {
        for number in connections { actions.append(.close(number)) }
        connections = []
        open(members.indices.prefix(Self.storesMax))
    }

    private mutating func openNext() {
        guard let index = members.firstIndex(where: { $0.waitingSince != nil }) else { return }
        open(index...index)
    }

    private mutating func open(_ indices: some Collection<Int>) {
        lastNumber += 1
        connections.append(lastNumber)
        for index in indices {
            (members[index].connection, members[index].waitingSince) = (lastNumber, nil)
            members[index].isReady = false
        }
        actions.append(.open(lastNumber, indices.map { members[$0].place }))
    }

    private func index(of store: StoreIdentifier, on number: Int) -> Int? {
        members.firstIndex { $0.listener.store == store && $0.connection == number }
    }

    private mutating func moved(_ index: Int, to cursor: Cursor) {
        guard members[index].place.since != cursor else { return }
        (members[index].place.since, members[index].place.isSaved) = (cursor, false)
    }

    private mutating func end(_ listener: Listener, _ failure: LinkFailure?) {
        remove(listener)
        actions.append(.end(listener, failure))
    }

    private mutating func remove(_ listener: Listener) {
        guard let index = members.firstIndex(where: { $0.listener == listener }) else { return }
        let number = members.remove(at: index).connection
        guard let number, connections.contains(number),
            !members.contains(where: { $0.connection == number })
        else { return }
        connections.removeAll { $0 == number }
        actions.append(.close(number))
    }
}
