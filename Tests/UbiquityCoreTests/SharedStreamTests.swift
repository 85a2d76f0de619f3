// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// The stream that a process's stores share.
struct SharedStreamTests {
    /// A server of stores whose revisions only grow, and a process that listens. Everything that a
    /// listener is told is checked.
    private struct World {
        var stream = SharedStream()
        var now: Int64 = 0
        /// By the number of the connection: the stores, and the revision that each has been sent.
        var connections: [Int: [StoreIdentifier: Int64]] = [:]
        var revisions: [StoreIdentifier: Int64] = [:]
        /// What each listener has seen.
        var heard: [SharedStream.Listener: Int64] = [:]
        var ended: [SharedStream.Listener: LinkFailure?] = [:]
        var opened: [Int] = []
        var isOld = false
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
            heard[listener] = revision
            stream.listen(
                listener, since: revision == 0 ? nil : Self.cursor(revision), isSaved: true, at: now
            )
            return listener
        }

        mutating func hangUp(_ listener: SharedStream.Listener) {
            heard[listener] = nil
            stream.hangUp(listener)
        }

        /// Carries out all that is to be done now.
        mutating func run() {
            while let action = stream.next(at: now) {
                switch action {
                case .open(let number, let places):
                    #expect(Set(places.map(\.store)).count == places.count)
                    #expect(places.count <= SharedStream.storesMax)
                    opened.append(places.count)
                    if isOld, places.count > 1 {
                        stream.isUnknown(to: number, at: now)
                        continue
                    }
                    connections[number] = Dictionary(
                        uniqueKeysWithValues: places.map { ($0.store, Self.revision($0.since)) })
                // It may have ended meanwhile.
                case .close(let number): connections[number] = nil
                case .deliver(let message, let listener): deliver(message, listener)
                case .end(let listener, let failure):
                    #expect(heard.removeValue(forKey: listener) != nil, "ended twice, or hung up")
                    ended[listener] = .some(failure)
                }
            }
        }

        private mutating func deliver(_ message: StreamMessage, _ listener: SharedStream.Listener) {
            guard let before = heard[listener] else {
                Issue.record("\(listener) has ended, and is told something")
                return
            }
            switch message {
            case .changes(let changes):
                let first = Int64(changes.serverMilliseconds)
                #expect(first <= before + 1, "\(listener) misses \(before + 1)..<\(first)")
                heard[listener] = max(before, Self.revision(changes.cursor))
            case .ready(let cursor, _): #expect(before >= Self.revision(cursor))
            case .progress, .resync: break
            }
        }

        /// Sends what a connection's store lacks. The first revision stands in the place of the time.
        mutating func send(_ number: Int, _ store: StoreIdentifier) {
            guard let sent = connections[number]?[store] else { return }
            let revision = revisions[store, default: 0]
            if revision > sent {
                connections[number]?[store] = revision
                let changes = ChangeSet(
                    records: [], cursor: Self.cursor(revision), serverMilliseconds: sent + 1,
                    isWhole: false)
                stream.received(.changes(changes), for: store, on: number)
            }
            let config = ServerConfig(
                serverMilliseconds: 0, limits: StoreLimits(), allowance: Allowance(),
                deletionsRememberedSeconds: 1)
            stream.received(.ready(Self.cursor(revision), config), for: store, on: number)
        }

        mutating func sendAll() {
            for (number, stores) in connections { for store in stores.keys { send(number, store) } }
            run()
        }

        mutating func pass(_ milliseconds: Int64) {
            now += milliseconds
            run()
        }
    }

    @Test func `a store alone has its connection at once`() {
        var world = World()
        let listener = world.listen(1)
        world.run()
        #expect(world.opened == [1])
        world.revisions[World.store(1)] = 3
        world.sendAll()
        #expect(world.heard[listener] == 3)
    }

    @Test func `many that begin together have two connections, one after the other`() {
        var world = World()
        let listeners = (1...40).map { number in
            let listener = world.listen(number)
            world.pass(1)
            if number == 1 { world.sendAll() }
            return listener
        }
        world.pass(100)
        #expect(world.opened == [1, 40])
        #expect(world.connections.count == 1)
        for number in 1...40 { world.revisions[World.store(number)] = 2 }
        world.sendAll()
        for listener in listeners { #expect(world.heard[listener] == 2) }
    }

    @Test func `nobody is interrupted before it is up to date, or for long`() {
        var world = World()
        _ = world.listen(1)
        world.run()
        _ = world.listen(2)
        world.pass(SharedStream.gatheringMilliseconds)
        #expect(world.opened == [1])
        world.sendAll()
        world.pass(1)
        #expect(world.opened == [1, 2])
        _ = world.listen(3)
        world.pass(SharedStream.patienceMilliseconds)
        #expect(world.opened == [1, 2, 3])
    }

    @Test func `a stream that is replaced goes on where it was, unsaved`() {
        var stream = SharedStream()
        let (a, b) = (World.store(1), World.store(2))
        stream.listen(.init(1, to: a), since: World.cursor(5), isSaved: true, at: 0)
        #expect(
            stream.next(at: 0) == .open(1, [.init(store: a, since: World.cursor(5), isSaved: true)])
        )
        let changes = ChangeSet(
            records: [], cursor: World.cursor(6), serverMilliseconds: 0, isWhole: false)
        stream.received(.changes(changes), for: a, on: 1)
        #expect(stream.next(at: 0) == .deliver(.changes(changes), to: .init(1, to: a)))
        stream.listen(.init(2, to: b), since: nil, isSaved: false, at: 0)
        #expect(stream.next(at: 5_000) == .close(1))
        #expect(
            stream.next(at: 5_000)
                == .open(
                    2,
                    [
                        .init(store: a, since: World.cursor(6), isSaved: false),
                        .init(store: b, since: nil, isSaved: false),
                    ]))
        // What the old one still brings is ignored.
        stream.received(.changes(changes), for: a, on: 1)
        stream.ended(1, nil)
        #expect(stream.next(at: 5_000) == nil)
    }

    @Test func `one store ends alone, and a connection with all of its stores`() {
        var world = World()
        let listeners = (1...3).map { world.listen($0) }
        world.run()
        world.stream.ended(World.store(1), on: 1, LinkFailure(.refused, "no"))
        world.run()
        #expect(world.ended[listeners[0]] == LinkFailure(.refused, "no"))
        #expect(world.ended.count == 1)
        world.connections[1] = nil
        world.stream.ended(1, LinkFailure(.unreachable, "cut"))
        world.run()
        #expect(world.ended.count == 3)
        #expect(world.stream.wake == nil)
    }

    @Test func `a connection that nobody hears is closed, and its end is not told`() {
        var world = World()
        let listeners = (1...2).map { world.listen($0) }
        world.run()
        world.hangUp(listeners[0])
        world.run()
        #expect(world.connections.count == 1)
        world.hangUp(listeners[1])
        world.run()
        #expect(world.connections.isEmpty)
        #expect(world.ended.isEmpty)
    }

    @Test func `with a server that has no such stream each has its own`() {
        var world = World()
        world.isOld = true
        let listeners = (1...3).map { world.listen($0) }
        world.run()
        #expect(world.opened == [3, 1, 1, 1])
        for number in 1...3 { world.revisions[World.store(number)] = 1 }
        world.sendAll()
        for listener in listeners { #expect(world.heard[listener] == 1) }
        _ = world.listen(4)
        world.run()
        #expect(world.opened == [3, 1, 1, 1, 1])
    }

    @Test func `more stores than a connection has place for wait, and follow when there is`() {
        var world = World()
        let listeners = (0..<70).map { world.listen($0) }
        world.run()
        #expect(world.opened == [64])
        #expect(world.stream.wake == nil)
        world.sendAll()
        for listener in listeners.prefix(10) { world.hangUp(listener) }
        world.pass(100)
        #expect(world.opened == [64, 60])
    }

    @Test(arguments: 1...300)
    func `whatever happens, each listener is told everything, in order, until its end`(seed: UInt64)
    {
        var random = RandomSource(seed: seed)
        var world = World()
        world.isOld = seed % 10 == 0
        for _ in 0..<400 {
            let store = Int.random(in: 1...6, using: &random)
            switch Int.random(in: 0..<12, using: &random) {
            case 0, 1:
                let revision = world.revisions[World.store(store), default: 0]
                _ = world.listen(store, since: Int64.random(in: 0...revision, using: &random))
            case 2:
                if let listener = world.heard.keys.min(by: { $0.number < $1.number }) {
                    world.hangUp(listener)
                }
            case 3:
                if let number = world.connections.keys.min() {
                    world.connections[number] = nil
                    world.stream.ended(number, nil)
                }
            case 4:
                if let number = world.connections.keys.min() {
                    world.connections[number]?[World.store(store)] = nil
                    world.stream.ended(World.store(store), on: number, LinkFailure(.refused, "no"))
                }
            case 5: world.now += Int64.random(in: 0...200, using: &random)
            case 6: for number in world.connections.keys { world.stream.progressed(on: number) }
            case 7, 8: world.revisions[World.store(store), default: 0] += 1
            default:
                if let number = world.connections.keys.randomElement(using: &random) {
                    world.send(number, World.store(store))
                }
            }
            if Bool.random(using: &random) { world.run() }
        }
        world.run()
        world.pass(10_000)
        world.sendAll()
        world.pass(10_000)
        world.sendAll()
        for (listener, revision) in world.heard {
            #expect(revision == world.revisions[listener.store, default: 0])
        }
        #expect(world.isOld || world.connections.count <= 1)
    }
}
