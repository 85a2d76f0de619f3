// SPDX-License-Identifier: Apache-2.0

/// The streams of a process's stores: each begins on a connection of its own, and those that are up
/// to date share one.
///
/// A store's beginning may be large, late or refused, and tells the server's time, so nothing of
/// another store comes before it or is held up by it. Once it is ready, the shared connection goes
/// on where its own has brought it; its listener hears of that by a second `ready`. A store cannot be
/// added to an open connection, so the shared one is replaced, a moment after a store has become
/// ready, and then not again for a pause that doubles until a shared connection has lasted. Stores
/// that a shared connection does not bring up to date, because the server is of an earlier version
/// or something is in between, get their own again. When it breaks later, that is an end for all.
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
        /// The number of the key with which the device opens the values; 0 for none.
        package var generation: UInt32 = 0
    }

    package enum Action: Hashable, Sendable {
        /// Opens a connection with this number for these stores.
        case open(Int, [Place])
        /// Ends that connection. What it still brings is ignored.
        case close(Int)
        case deliver(StreamMessage, to: Listener)
        /// The last for this listener.
        case end(Listener, LinkFailure?)
    }

    /// How long a store that has become ready waits for others that are about to, in milliseconds.
    package static let gatheringMilliseconds: Int64 = 1_000
    /// The longest silence of a shared connection that has not brought all of its stores up to date,
    /// and the longest time for that, in milliseconds.
    package static let beginningMilliseconds: (silence: Int64, total: Int64) = (10_000, 300_000)
    /// The first and the longest pause between two shared connections, in milliseconds.
    package static let pauseMilliseconds: ClosedRange<Int64> = 1_000...3_600_000
    /// How long a shared connection lasts that needs no longer pause after it, in milliseconds.
    package static let lastingMilliseconds: Int64 = 600_000

    private struct Member: Hashable {
        var listener: Listener
        var place: Place
        var connection: Int
        /// Whether the listener has once been told that it has everything.
        var isReady = false
        /// Whether this connection has brought it up to date.
        var isCurrent = false
    }

    private struct Shared: Hashable {
        var number: Int
        var openedAt: Int64
        /// When it last brought something.
        var heardAt: Int64
        /// The stores that have not ended, also those that nobody hears any more.
        var stores: [StoreIdentifier]
    }

    /// In the order in which they began.
    private var members: [Member] = []
    private var shared: Shared?
    private var lastNumber = 0
    /// The connections that have brought the first part of an event only.
    private var partial: [Int] = []
    /// Since when another shared connection would serve more stores, or fewer that nobody hears; nil
    /// if none would.
    private var outdatedSince: Int64?
    private var pauseEndsAt: Int64 = 0
    private var pause = pauseMilliseconds.lowerBound
    private var actions: [Action] = []

    package init() {}

    // MARK: - Listeners

    package mutating func listen(
        _ listener: Listener, since cursor: Cursor?, isSaved: Bool, generation: UInt32 = 0,
        at now: Int64
    ) {
        let place = Place(
            store: listener.store, since: cursor, isSaved: isSaved, generation: generation)
        members.append(Member(listener: listener, place: place, connection: 0))
        openAlone(members.count - 1)
        review(at: now)
    }

    /// Nothing more is delivered, and there is no end.
    package mutating func hangUp(_ listener: Listener, at now: Int64) {
        actions.removeAll { action in
            switch action {
            case .deliver(_, to: listener), .end(listener, _): true
            default: false
            }
        }
        remove(listener, at: now)
    }

    /// Whether what is known of this server must be kept, although nobody listens.
    package func isPausing(at now: Int64) -> Bool { pauseEndsAt > now }

    // MARK: - Connections

    /// A message of a connection for one of its stores.
    package mutating func received(
        _ message: StreamMessage, for store: StoreIdentifier, on number: Int, at now: Int64
    ) {
        heard(number, at: now)
        if case .resync = message {
            leave(store, number)
            review(at: now)
        }
        guard let index = index(of: store, on: number) else { return }
        switch message {
        case .progress, .resync: break
        case .changes(let changes):
            // Deletions since its place cannot be told any more: only a stream that begins can say so.
            if members[index].isReady, changes.isWhole {
                return actions.append(.deliver(.resync, to: members[index].listener))
            }
            move(index, to: changes.cursor)
        case .ready(let cursor, _):
            move(index, to: cursor)
            (members[index].isReady, members[index].isCurrent) = (true, true)
            review(at: now)
        }
        actions.append(.deliver(message, to: members[index].listener))
    }

    /// A connection has brought bytes, but no message.
    package mutating func progressed(on number: Int, at now: Int64) {
        heard(number, at: now)
        for member in members where member.connection == number {
            actions.append(.deliver(.progress, to: member.listener))
        }
    }

    /// Whether the last that a connection brought is the first part of an event.
    package mutating func setPartial(_ isPartial: Bool, on number: Int) {
        partial.removeAll { $0 == number }
        if isPartial { partial.append(number) }
    }

    /// A connection goes on without this store.
    package mutating func ended(
        _ store: StoreIdentifier, on number: Int, _ failure: LinkFailure, at now: Int64
    ) {
        heard(number, at: now)
        leave(store, number)
        guard let index = index(of: store, on: number) else { return review(at: now) }
        let member = members[index]
        if number == shared?.number, !member.isCurrent, failure.isForLackOfPlace {
            // The place of the connection before may not be free yet.
            openAlone(index)
            closeIfUnheard(number, at: now)
        } else {
            actions.append(.end(member.listener, failure))
            remove(member.listener, at: now)
        }
    }

    /// A connection has ended, with all of its stores; nil if the server ended it normally.
    package mutating func ended(_ number: Int, _ failure: LinkFailure?, at now: Int64) {
        setPartial(false, on: number)
        defer { review(at: now) }
        let places = members.indices.filter { members[$0].connection == number }
        if number == shared?.number {
            sharedEnded(at: now)
            if !places.contains(where: { members[$0].isCurrent }), failure?.isOfServer != true {
                if failure?.kind == .refused { takeLongestPause(at: now) }
                return separate(places)
            }
        }
        for index in places { actions.append(.end(members[index].listener, failure)) }
        members.removeAll { $0.connection == number }
    }

    /// The next action; nil if there is none until something happens, or until ``wake``.
    package mutating func next(at now: Int64) -> Action? {
        if actions.isEmpty, let wake, wake <= now {
            if isBeginning { giveUp(at: now) } else { replace(at: now) }
        }
        return actions.isEmpty ? nil : actions.removeFirst()
    }

    /// The uptime at which something is to be done though nothing happens; nil if nothing is.
    package var wake: Int64? {
        if let shared, isBeginning {
            return min(
                shared.heardAt + Self.beginningMilliseconds.silence,
                shared.openedAt + Self.beginningMilliseconds.total)
        }
        guard let outdatedSince,
            !candidates.contains(where: { partial.contains(members[$0].connection) })
        else { return nil }
        return max(outdatedSince + Self.gatheringMilliseconds, pauseEndsAt)
    }

    // MARK: - The shared connection

    /// Replaces it by one for all that are ready.
    private mutating func replace(at now: Int64) {
        let places = candidates
        var closed: [Int] = []
        for index in places where !closed.contains(members[index].connection) {
            closed.append(members[index].connection)
            actions.append(.close(members[index].connection))
        }
        sharedEnded(at: now)
        defer { review(at: now) }
        guard places.count > 1 else { return separate(places) }
        lastNumber += 1
        shared = Shared(
            number: lastNumber, openedAt: now, heardAt: now,
            stores: places.map { members[$0].listener.store })
        for index in places {
            (members[index].connection, members[index].isCurrent) = (lastNumber, false)
        }
        actions.append(.open(lastNumber, places.map { members[$0].place }))
        pauseEndsAt = now + pause
        pause = min(2 * pause, Self.pauseMilliseconds.upperBound)
    }

    /// The stores that it has not brought up to date get their own connection again.
    private mutating func giveUp(at now: Int64) {
        guard let number = shared?.number else { return }
        let late = members.indices.filter {
            members[$0].connection == number && !members[$0].isCurrent
        }
        for index in late { members[index].connection = 0 }
        // Its places at the server are free then.
        closeIfUnheard(number, at: now)
        if shared == nil { takeLongestPause(at: now) }
        separate(late)
        review(at: now)
    }

    private mutating func sharedEnded(at now: Int64) {
        guard let shared else { return }
        if now - shared.openedAt >= Self.lastingMilliseconds {
            pause = max(pause / 4, Self.pauseMilliseconds.lowerBound)
        }
        pauseEndsAt = now + pause
        self.shared = nil
    }

    private mutating func takeLongestPause(at now: Int64) {
        pause = Self.pauseMilliseconds.upperBound
        pauseEndsAt = now + pause
    }

    private mutating func separate(_ places: [Int]) { for index in places { openAlone(index) } }

    private mutating func openAlone(_ index: Int) {
        lastNumber += 1
        (members[index].connection, members[index].isCurrent) = (lastNumber, false)
        actions.append(.open(lastNumber, [members[index].place]))
    }

    /// Whether the shared connection has not brought all of its stores up to date.
    private var isBeginning: Bool {
        guard let shared else { return false }
        return members.contains { $0.connection == shared.number && !$0.isCurrent }
    }

    /// The members for a shared connection: those of the present one, and as many others that are
    /// up to date as there is room for.
    private var candidates: [Int] {
        let old = members.indices.filter { members[$0].connection == shared?.number }
        return members.indices.reduce(into: old) { places, index in
            let member = members[index]
            guard member.isCurrent, member.connection != shared?.number,
                places.count < StreamedStore.countMax,
                !places.contains(where: { members[$0].listener.store == member.listener.store })
            else { return }
            places.append(index)
        }
    }

    private mutating func review(at now: Int64) {
        let served = members.count { $0.connection == shared?.number }
        let isOutdated =
            candidates.count > max(served, 1) || served < shared?.stores.count ?? 0
        outdatedSince = isOutdated ? outdatedSince ?? now : nil
    }

    // MARK: - Members

    private mutating func heard(_ number: Int, at now: Int64) {
        if shared?.number == number { shared?.heardAt = now }
    }

    /// A store has ended on a connection.
    private mutating func leave(_ store: StoreIdentifier, _ number: Int) {
        if shared?.number == number { shared?.stores.removeAll { $0 == store } }
    }

    private func index(of store: StoreIdentifier, on number: Int) -> Int? {
        members.firstIndex { $0.listener.store == store && $0.connection == number }
    }

    private mutating func move(_ index: Int, to cursor: Cursor) {
        guard members[index].place.since != cursor else { return }
        (members[index].place.since, members[index].place.isSaved) = (cursor, false)
    }

    private mutating func remove(_ listener: Listener, at now: Int64) {
        guard let index = members.firstIndex(where: { $0.listener == listener }) else { return }
        closeIfUnheard(members.remove(at: index).connection, at: now)
    }

    private mutating func closeIfUnheard(_ number: Int, at now: Int64) {
        defer { review(at: now) }
        if members.contains(where: { $0.connection == number }) { return }
        actions.append(.close(number))
        setPartial(false, on: number)
        if shared?.number == number { sharedEnded(at: now) }
    }
}

extension LinkFailure {
    fileprivate var isForLackOfPlace: Bool {
        if case .tooManyStreams = kind { true } else { false }
    }

    /// Whether the server itself wants no connection now, for one store or several.
    fileprivate var isOfServer: Bool {
        switch kind {
        case .unauthorized, .busy, .tooManyStreams: true
        default: false
        }
    }
}
