// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// The stream that a process's stores share.
struct SharedStreamTests {
    /// A server of stores whose revisions only grow, and a process that listens. Everything that a
    /// listener is told is checked.
    private struct World {
        /// What a listener has been told.
        struct Told {
            var revision: Int64
            var isReady = false
        }

        var stream = SharedStream()
        var now: Int64 = 0
        /// By the number of the connection: the stores, and the revision that each has been sent.
        var connections: [Int: [StoreIdentifier: Int64]] = [:]
        var revisions: [StoreIdentifier: Int64] = [:]
        var told: [SharedStream.Listener: Told] = [:]
        var ended: [SharedStream.Listener: LinkFailure?] = [:]
        /// The numbers of stores of the connections, in the order in which they were opened.
        var opened: [Int] = []
        /// How a connection of several stores is answered; nil: as it should.
        var refusal: LinkFailure?
        /// Whether connections of several stores are not answered at all.
        var isSilent = false
        private var last = 0

        static func store(_ number: Int) -> StoreIdentifier {
            guard let store = try? StoreIdentifier("s\(number)") else { preconditionFailure() }
            return store
        }

        static func cursor(_ revision: Int64) -> Cursor { Cursor("1-\(revision)")! }

        static func revision(_ cursor: Cursor?) -> Int64 {
            cursor.flatMap { Int64($0.text.dropFirst(2)) } ?? 0
        }

        mutating func listen(_ number: Int, since revision: Int64 = 0) -> SharedStream.Listener {
            last += 1
            let listener = SharedStream.Listener(last, to: Self.store(number))
            told[listener] = Told(revision: revision)
            stream.listen(
                listener, since: revision == 0 ? nil : Self.cursor(revision), isSaved: true, at: now
            )
            return listener
        }

        mutating func hangUp(_ listener: SharedStream.Listener) {
            told[listener] = nil
            stream.hangUp(listener, at: now)
        }

        /// Carries out all that is to be done now.
        mutating func run() {
            while let action = stream.next(at: now) {
                switch action {
                case .open(let number, let places):
                    #expect(Set(places.map(\.store)).count == places.count)
                    #expect(places.count <= StreamedStore.countMax)
                    opened.append(places.count)
                    if let refusal, places.count > 1 {
                        stream.ended(number, refusal, at: now)
                        continue
                    }
                    connections[number] = Dictionary(
                        uniqueKeysWithValues: places.map { ($0.store, Self.revision($0.since)) })
                // It may have ended meanwhile.
                case .close(let number): connections[number] = nil
                case .deliver(let message, let listener): deliver(message, listener)
                case .end(let listener, let failure):
                    #expect(told.removeValue(forKey: listener) != nil, "ended twice, or hung up")
                    ended[listener] = .some(failure)
                }
            }
        }

        private mutating func deliver(_ message: StreamMessage, _ listener: SharedStream.Listener) {
            guard let before = told[listener] else {
                Issue.record("\(listener) has ended, and is told something")
                return
            }
            switch message {
            case .changes(let changes):
                let first = changes.serverMilliseconds
                #expect(
                    first <= before.revision + 1,
                    "\(listener) misses \(before.revision + 1)..<\(first)")
                #expect(!changes.isWhole || !before.isReady, "the whole store, when it is ready")
                told[listener]?.revision = max(before.revision, Self.revision(changes.cursor))
            case .ready(let cursor, _):
                #expect(before.revision >= Self.revision(cursor))
                told[listener]?.isReady = true
            case .progress: break
            case .resync: hangUp(listener)
            }
        }

        /// Sends what a connection's store lacks. The first revision stands in the place of the time.
        mutating func send(_ number: Int, _ store: StoreIdentifier, isWhole: Bool = false) {
            guard let sent = connections[number]?[store],
                !isSilent || connections[number]?.count == 1
            else { return }
            let revision = revisions[store, default: 0]
            if revision > sent || isWhole {
                connections[number]?[store] = revision
                let changes = ChangeSet(
                    records: [], cursor: Self.cursor(revision),
                    serverMilliseconds: isWhole ? 0 : sent + 1, isWhole: isWhole)
                stream.received(.changes(changes), for: store, on: number, at: now)
            }
            let config = ServerConfig(
                serverMilliseconds: 0, limits: StoreLimits(), allowance: Allowance(),
                deletionsRememberedSeconds: 1)
            stream.received(
                .ready(Self.cursor(revision), config), for: store, on: number, at: now)
        }

        mutating func sendAll() {
            for (number, stores) in connections { for store in stores.keys { send(number, store) } }
            run()
        }

        mutating func pass(_ milliseconds: Int64) {
            now += milliseconds
            run()
        }

        /// Has these stores listen, become ready, and get a connection together.
        mutating func merge(_ numbers: ClosedRange<Int>) -> [SharedStream.Listener] {
            let listeners = numbers.map { listen($0) }
            run()
            sendAll()
            pass(SharedStream.gatheringMilliseconds)
            return listeners
        }

        /// Has that connection bring them up to date, too.
        mutating func share(_ numbers: ClosedRange<Int>) -> [SharedStream.Listener] {
            let listeners = merge(numbers)
            sendAll()
            return listeners
        }

        /// Breaks the connection of several stores.
        mutating func breakShared(_ failure: LinkFailure? = nil) {
            for (number, stores) in connections where stores.count > 1 {
                connections[number] = nil
                stream.ended(number, failure, at: now)
            }
            run()
        }
    }

    @Test func `a store alone keeps its connection`() {
        var world = World()
        let listener = world.listen(1)
        world.run()
        world.revisions[World.store(1)] = 3
        world.sendAll()
        world.pass(100_000)
        #expect(world.opened == [1])
        #expect(world.told[listener]?.revision == 3)
        #expect(world.stream.wake == nil)
    }

    @Test func `stores begin on connections of their own, and share one when they are ready`() {
        var world = World()
        let listeners = world.share(1...40)
        #expect(world.opened == Array(repeating: 1, count: 40) + [40])
        #expect(world.connections.count == 1)
        for number in 1...40 { world.revisions[World.store(number)] = 2 }
        world.sendAll()
        for listener in listeners { #expect(world.told[listener]?.revision == 2) }
        #expect(world.stream.wake == nil)
    }

    @Test func `a store that is not ready, or is refused, disturbs nobody`() {
        var world = World()
        _ = world.share(1...2)
        let opened = world.opened.count
        let third = world.listen(3)
        world.pass(100_000)
        for (number, stores) in world.connections where stores[World.store(3)] != nil {
            world.connections[number] = nil
            world.stream.ended(number, LinkFailure(.refused, "no"), at: world.now)
        }
        world.pass(100_000)
        #expect(world.ended[third] == LinkFailure(.refused, "no"))
        #expect(world.opened.count == opened + 1)
    }

    @Test func `a shared stream goes on where each store was, and what it had not saved`() {
        var stream = SharedStream()
        let (a, b) = (World.store(1), World.store(2))
        let config = ServerConfig(
            serverMilliseconds: 0, limits: StoreLimits(), allowance: Allowance(),
            deletionsRememberedSeconds: 1)
        stream.listen(.init(1, to: a), since: World.cursor(5), isSaved: true, at: 0)
        stream.listen(.init(2, to: b), since: World.cursor(7), isSaved: true, at: 0)
        for (number, store, revision) in [(1, a, 6), (2, b, 7)] as [(Int, StoreIdentifier, Int64)] {
            stream.received(
                .ready(World.cursor(revision), config), for: store, on: number, at: 0)
        }
        var actions: [SharedStream.Action] = []
        while let action = stream.next(at: 1_000) { actions.append(action) }
        #expect(
            actions.suffix(3) == [
                .close(1), .close(2),
                .open(
                    3,
                    [
                        .init(store: a, since: World.cursor(6), isSaved: false),
                        .init(store: b, since: World.cursor(7), isSaved: true),
                    ]),
            ])
        // What the old ones still bring is ignored.
        let changes = ChangeSet(
            records: [], cursor: World.cursor(8), serverMilliseconds: 0, isWhole: false)
        stream.received(.changes(changes), for: a, on: 1, at: 1_000)
        stream.ended(1, nil, at: 1_000)
        #expect(stream.next(at: 1_000) == nil)
    }

    @Test func `one store ends alone, and a connection with all of its stores`() {
        var world = World()
        let listeners = world.share(1...3)
        let number = world.connections.keys.first!
        world.stream.ended(
            World.store(1), on: number, LinkFailure(.refused, "no"), at: world.now)
        world.run()
        #expect(world.ended[listeners[0]] == LinkFailure(.refused, "no"))
        #expect(world.ended.count == 1)
        world.breakShared(LinkFailure(.unreachable, "cut"))
        #expect(world.ended.count == 3)
        #expect(world.stream.wake == nil)
    }

    @Test func `a connection that nobody hears is closed, and its end is not told`() {
        var world = World()
        let listeners = world.share(1...2)
        world.hangUp(listeners[0])
        world.run()
        #expect(world.connections.count == 1)
        world.hangUp(listeners[1])
        world.run()
        #expect(world.connections.isEmpty)
        #expect(world.ended.isEmpty)
    }

    @Test func `a store that nobody hears leaves the connection after a while`() {
        var world = World()
        let listeners = world.share(1...3)
        world.hangUp(listeners[0])
        world.pass(100_000)
        #expect(world.opened == [1, 1, 1, 3, 2])
        world.sendAll()
        world.hangUp(listeners[1])
        world.pass(100_000)
        #expect(world.opened == [1, 1, 1, 3, 2, 1])
        world.revisions[World.store(3)] = 9
        world.sendAll()
        #expect(world.told[listeners[2]]?.revision == 9)
    }

    @Test(arguments: [
        LinkFailure(.refused, "there is no such route"), LinkFailure(.unreachable, "cut"), nil,
    ])
    func `where a shared connection does not begin each store has its own again`(
        refusal: LinkFailure?
    ) {
        var world = World()
        world.isSilent = refusal == nil
        world.refusal = refusal
        let listeners = world.share(1...3)
        if world.isSilent { world.pass(SharedStream.beginningMilliseconds.silence) }
        #expect(world.opened == [1, 1, 1, 3, 1, 1, 1])
        for number in 1...3 { world.revisions[World.store(number)] = 1 }
        world.sendAll()
        for listener in listeners { #expect(world.told[listener]?.revision == 1) }
        #expect(world.ended.isEmpty)
    }

    @Test func `a credential that is refused is refused for all`() {
        var world = World()
        world.refusal = LinkFailure(.unauthorized, "revoked")
        let listeners = world.share(1...3)
        for listener in listeners { #expect(world.ended[listener] == world.refusal) }
    }

    @Test func `shared connections follow one another ever more slowly, until one has lasted`() {
        var world = World()
        var times: [Int64] = []
        _ = world.share(1...2)
        for _ in 0..<5 {
            let begun = world.now
            world.breakShared()
            _ = world.listen(1)
            _ = world.listen(2)
            world.run()
            world.sendAll()
            while world.connections.count > 1 { world.pass(100) }
            times.append(world.now - begun)
            world.sendAll()
        }
        #expect(times == [2_000, 4_000, 8_000, 16_000, 32_000])
        world.pass(SharedStream.lastingMilliseconds)
        let before = world.opened.count
        _ = world.listen(3)
        world.run()
        world.sendAll()
        world.pass(SharedStream.gatheringMilliseconds)
        #expect(world.opened.suffix(from: before) == [1, 3])
        world.sendAll()
        _ = world.listen(4)
        world.run()
        world.sendAll()
        world.pass(16_000)
        #expect(world.opened.suffix(from: before) == [1, 3, 1, 4])
    }

    @Test func `a store that a shared connection leaves out gets its own again`() {
        var world = World()
        let listeners = world.merge(1...3)
        let number = world.connections.keys.first!
        world.send(number, World.store(1))
        world.stream.progressed(on: number, at: world.now + 9_000)
        world.pass(SharedStream.beginningMilliseconds.silence)
        #expect(world.connections.count == 1)
        world.pass(9_000)
        #expect(world.opened == [1, 1, 1, 3, 1, 1])
        world.revisions[World.store(2)] = 4
        world.sendAll()
        #expect(world.told[listeners[1]]?.revision == 4)
        #expect(world.ended.isEmpty)
    }

    @Test func `a store without a place on the shared connection asks for one of its own`() {
        var world = World()
        let listeners = world.merge(1...3)
        let number = world.connections.keys.first!
        let failure = LinkFailure(.tooManyStreams(retryAfterMilliseconds: 9), "too many")
        world.stream.ended(World.store(2), on: number, failure, at: world.now)
        world.run()
        #expect(world.opened == [1, 1, 1, 3, 1])
        world.stream.ended(number + 1, failure, at: world.now)
        world.run()
        #expect(world.ended == [listeners[1]: failure])
    }

    @Test func `an event that is on its way is not cut`() {
        var world = World()
        _ = world.listen(1)
        _ = world.listen(2)
        world.run()
        world.sendAll()
        world.stream.setPartial(true, on: 1)
        world.pass(100_000)
        #expect(world.opened == [1, 1])
        world.stream.setPartial(false, on: 1)
        world.run()
        #expect(world.opened == [1, 1, 2])
    }

    @Test func `the whole store comes only to one that begins`() {
        var world = World()
        let listeners = world.share(1...2)
        world.send(world.connections.keys.first!, World.store(1), isWhole: true)
        world.run()
        #expect(world.told[listeners[0]] == nil)
        #expect(world.told[listeners[1]] != nil)
    }

    @Test func `more stores than a connection has room for keep their own until there is`() {
        var world = World()
        let listeners = world.share(1...70)
        #expect(world.opened.last == 64)
        #expect(world.connections.count == 7)
        #expect(world.stream.wake == nil)
        for listener in listeners.prefix(10) { world.hangUp(listener) }
        world.pass(100_000)
        #expect(world.opened.last == 60)
        #expect(world.connections.count == 1)
    }

    @Test(arguments: 1...150)
    func `whatever happens, each listener is told everything, in order, until its end`(seed: UInt64)
    {
        var random = RandomSource(seed: seed)
        var world = World()
        world.refusal = seed % 10 == 0 ? LinkFailure(.refused, "no") : nil
        world.isSilent = seed % 10 == 1
        for _ in 0..<300 {
            let store = Int.random(in: 1...6, using: &random)
            let number = world.connections.keys.sorted().randomElement(using: &random)
            switch Int.random(in: 0..<14, using: &random) {
            case 0 where world.told.count < 12:
                let revision = world.revisions[World.store(store), default: 0]
                _ = world.listen(store, since: Int64.random(in: 0...revision, using: &random))
            case 1:
                if let listener = world.told.keys.min(by: { $0.number < $1.number }) {
                    world.hangUp(listener)
                }
            case 2 where Int.random(in: 0..<4, using: &random) == 0:
                if let number {
                    world.connections[number] = nil
                    world.stream.ended(number, nil, at: world.now)
                }
            case 3:
                if let number, world.connections[number]?[World.store(store)] != nil {
                    world.connections[number]?[World.store(store)] = nil
                    let failure = LinkFailure(
                        Bool.random(using: &random) ? .busy(retryAfterMilliseconds: 5) : .refused,
                        "no")
                    world.stream.ended(
                        World.store(store), on: number, failure, at: world.now)
                }
            case 4: world.now += Int64.random(in: 0...5_000, using: &random)
            case 5:
                if let number {
                    world.stream.progressed(on: number, at: world.now)
                    world.stream.setPartial(Bool.random(using: &random), on: number)
                }
            case 6, 7: world.revisions[World.store(store), default: 0] += 1
            case 8 where Int.random(in: 0..<8, using: &random) == 0:
                if let number { world.send(number, World.store(store), isWhole: true) }
            default: if let number { world.send(number, World.store(store)) }
            }
            if Bool.random(using: &random) { world.run() }
        }
        for number in world.connections.keys { world.stream.setPartial(false, on: number) }
        for _ in 0..<6 {
            world.pass(SharedStream.pauseMilliseconds.upperBound)
            world.sendAll()
        }
        for (listener, told) in world.told {
            #expect(told.revision == world.revisions[listener.store, default: 0])
            #expect(told.isReady)
        }
        // One that two listen to has one more.
        let stores = Set(world.told.keys.map(\.store)).count
        guard world.refusal == nil, !world.isSilent else { return }
        #expect(world.connections.count == world.told.count - stores + min(stores, 1))
    }
}
