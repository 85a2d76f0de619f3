// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// Devices that seal an account of a model server, and are interrupted before, within and after
/// each of their steps.
@Suite struct `Sealing an account step by step` {
    private static let stores = ["a", "b", "c"].map { try! StoreIdentifier($0) }

    private struct Server {
        var generation: UInt32 = 0
        var check: Bytes32?
        /// The key with which each store is sealed; nil for clear.
        var stores: [StoreIdentifier: Bytes32?] = Dictionary(
            uniqueKeysWithValues: `Sealing an account step by step`.stores.map { ($0, nil) })
        var sealedWith: [StoreIdentifier: UInt32] = [:]

        var unsealed: [StoreIdentifier] {
            stores.keys.filter { sealedWith[$0] ?? 0 < generation }
                .sorted { ExactString($0.string) < ExactString($1.string) }
        }

        /// As the server does: the next generation, or nothing.
        mutating func take(_ keyring: Keyring) -> Bool {
            guard generation == 0 || keyring.current == generation + 1 else { return false }
            (generation, check) = (keyring.current, keyring.check)
            return true
        }
    }

    private struct Device {
        var state = DeviceState()
        var isRotating = false

        init(_ number: Int) {
            state.signIn(
                SignedInAccount(
                    server: "http://s", account: "A", accountName: "A", device: "\(number)",
                    deviceName: "d", credential: "c"))
        }

        /// What there is to do, with the server's mark taken.
        mutating func next(_ server: Server) -> SealingStep {
            guard var session = state.sealing else { return .done }
            defer { state.sealing = session }
            return session.mark(
                generation: server.generation, check: server.check, unsealed: server.unsealed)
        }

        /// - Parameter isCut: The answer of the server is lost, and the device stops there.
        mutating func run(
            _ step: SealingStep, _ server: inout Server, isCut: Bool, _ random: inout RandomSource
        ) {
            switch step {
            case .propose: propose(from: Keyring([:]), &random)
            case .mark: state.proposal.map { _ = server.take($0) }
            case .seal(let store):
                let keyring = state.keyring!
                guard keyring.current == server.generation else { return }
                server.stores[store] = keyring.check
                server.sealedWith[store] = keyring.current
            case .done where isRotating && !isCut:
                isRotating = false
                propose(from: state.keyring!, &random)
            case .done, .getKey, .restored: break
            }
        }

        private mutating func propose(from keyring: Keyring, _ random: inout RandomSource) {
            let key = (0..<32).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            state.proposal = keyring.adding(Bytes32(key)!, at: 1)
        }
    }

    @Test func `ends with one key, however many begin and wherever they are interrupted`() {
        var random = RandomSource(seed: UInt64.random(in: 0...UInt64.max))
        for _ in 0..<50 {
            let seed = random
            var server = Server()
            var devices = (0..<3).map { Device($0) }
            for _ in 0..<60 {
                let index = Int(random.next() % 3)
                // Others may act between what a device reads and what it does.
                let step = devices[index].next(server)
                let other = Int(random.next() % 3)
                if other != index, random.next() % 2 == 0 {
                    let step = devices[other].next(server)
                    devices[other].run(step, &server, isCut: false, &random)
                }
                if random.next() % 8 == 0 { devices[index].isRotating = true }
                if random.next() % 4 == 0 { continue }
                // What it read may no longer be so.
                guard step == devices[index].next(server) || step == .mark else { continue }
                devices[index].run(step, &server, isCut: random.next() % 4 == 0, &random)
                // Nothing is ever sealed with a key that is not the account's.
                for store in Self.stores where server.sealedWith[store] == server.generation {
                    #expect(server.stores[store]! == server.check, "\(seed)")
                }
            }
            // Whoever has the key finishes it; the others get it.
            let holder = devices.firstIndex {
                $0.state.keyring?.check == server.check && server.check != nil
                    || $0.state.proposal?.check == server.check && server.check != nil
            }
            if server.generation > 0 { #expect(holder != nil, "\(seed)") }
            guard let holder, server.generation > 0 else { continue }
            devices[holder].isRotating = false
            for _ in 0..<10 {
                let step = devices[holder].next(server)
                devices[holder].run(step, &server, isCut: false, &random)
            }
            #expect(devices[holder].next(server) == .done, "\(seed)")
            #expect(
                server.unsealed.isEmpty && server.stores.values.allSatisfy { $0 == server.check })
            for index in devices.indices {
                let step = devices[index].next(server)
                let hasKey = devices[index].state.keyring?.check == server.check
                #expect(step == (hasKey ? .done : .getKey), "\(seed)")
                #expect(devices[index].state.proposal == nil, "\(seed)")
            }
        }
    }

    @Test func `sends nothing to a server that knows less than the device`() throws {
        let first = try #require(Keyring([:]).adding(Bytes32([UInt8](0..<32))!, at: 1))
        let second = try #require(first.adding(Bytes32([UInt8](1...32))!, at: 1))
        func next(
            _ keyring: Keyring?, _ proposal: Keyring?, _ mark: Keyring?, isSealed: Bool = false,
            unsealed: [StoreIdentifier] = Self.stores
        ) -> (SealingStep, SealingSession) {
            var session = SealingSession(
                account: "A", keyring: keyring, proposal: proposal, isSealed: isSealed)
            let step = session.mark(
                generation: mark?.current ?? 0, check: mark?.check, unsealed: unsealed)
            return (step, session)
        }
        #expect(next(first, nil, nil).0 == .restored && next(second, nil, first).0 == .restored)
        #expect(next(second, nil, nil).0 == .restored)
        // A device without a key knows it as well.
        #expect(next(nil, nil, nil).0 == .propose)
        #expect(next(nil, nil, nil, isSealed: true).0 == .restored)
        #expect(next(nil, nil, first, isSealed: true).0 == .getKey)
        // A proposal ends that goes on from another key.
        for (step, session) in [next(nil, second, nil), next(first, second, nil)] {
            #expect([.propose, .restored].contains(step) && session.proposal == nil)
        }
        #expect(next(first, second, first).0 == .seal(Self.stores[0]))
        #expect(next(first, second, first, unsealed: []).0 == .mark)
        #expect(next(nil, first, nil).0 == .mark)
        // It is the account's key, and stays a proposal until all stores are sealed with it.
        let adopted = next(first, second, second)
        #expect(adopted.0 == .seal(Self.stores[0]))
        #expect(adopted.1.keyring == second && adopted.1.proposal == second)
        let done = next(first, second, second, unsealed: [])
        #expect(done.0 == .done && done.1.keyring == second && done.1.proposal == nil)
        #expect(next(nil, nil, first).0 == .getKey && next(first, nil, second).0 == .getKey)
        #expect(next(first, nil, first).0 == .seal(Self.stores[0]))
        #expect(next(first, first, first).0 == .seal(Self.stores[0]))
        // A mark of somebody else's with the same number.
        let stranger = try #require(Keyring([:]).adding(Bytes32([UInt8](2...33))!, at: 1))
        for (keyring, proposal) in [(first, nil), (first, second), (nil, first)] {
            let (step, session) = next(keyring, proposal, stranger)
            #expect(step == .getKey && session.proposal == nil && session.keyring == keyring)
        }
        let confined = first.confined(to: Set(Self.stores))
        #expect(next(confined, nil, first).0 == .seal(Self.stores[0]))
        #expect(next(nil, Keyring([:]), nil).0 == .propose)
    }
}

/// What a rotation shows of a history, which it erases.
@Suite struct `A history before a rotation` {
    private static let key = try! Key("k")

    private func version(
        _ value: String?, by device: UInt64, at revision: Int64, until end: Int64? = nil,
        isLost: Bool = false
    ) -> RecordVersion {
        let record = Record(
            key: Self.key, content: value.map { .value(.string(ExactString($0))) } ?? .deleted,
            stamp: Stamp(
                HybridTimestamp(milliseconds: revision, counter: 0), DeviceID(rawValue: device)))
        let moment = end.map { RecordVersion.Moment(revision: $0, milliseconds: $0) }
        return RecordVersion(
            record: record, came: .init(revision: revision, milliseconds: revision),
            outcome: moment.map {
                isLost ? .lost($0, by: record.stamp) : .replaced($0, by: record.stamp)
            }
                ?? .current)
    }

    private func replaced(_ versions: [RecordVersion]) -> [RecordVersion] {
        versions.replaced(byOthersThan: [DeviceID(rawValue: 1)])
    }

    @Test func `says what was there before a device that is gone changed it`() {
        let good = version("good", by: 1, at: 1, until: 2)
        for last in [version(nil, by: 7, at: 3), version("bad", by: 7, at: 3)] {
            #expect(replaced([last, version("worse", by: 7, at: 2, until: 3), good]) == [good])
        }
        // One that came too late was never there.
        let late = version("late", by: 1, at: 2, until: 2, isLost: true)
        #expect(replaced([version(nil, by: 7, at: 3), late, good]) == [good])
        #expect([late, good].lastOpened == [Self.key: good.record])
    }

    @Test func `says nothing of what a device of the account has changed since`() {
        let good = version("good", by: 1, at: 1, until: 2)
        #expect(
            replaced([version("new", by: 1, at: 3), version(nil, by: 7, at: 2, until: 3), good])
                .isEmpty)
        // Nor of what only the device that is gone has ever written, and what was before a sign-in.
        #expect(
            replaced([version("own", by: 7, at: 2), version("own", by: 7, at: 1, until: 2)]).isEmpty
        )
        #expect(replaced([version("first", by: 0, at: 2), good]).isEmpty)
    }
}
