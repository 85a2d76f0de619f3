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

        func next(_ server: Server) -> SealingStep {
            SealingStep.next(
                keyring: state.keyring, proposal: state.proposal, generation: server.generation,
                check: server.check, wasSealed: false, unsealed: server.unsealed)
        }

        /// - Parameter isCut: The answer of the server is lost, and the device stops there.
        mutating func run(
            _ step: SealingStep, _ server: inout Server, isCut: Bool, _ random: inout RandomSource
        ) {
            switch step {
            case .propose: propose(from: Keyring([:]), &random)
            case .mark: _ = server.take(state.proposal!)
            case .adopt: state.adoptProposal()
            case .drop: state.proposal = nil
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
                if step == .drop { devices[holder].isRotating = false }
            }
            #expect(devices[holder].next(server) == .done, "\(seed)")
            #expect(
                server.unsealed.isEmpty && server.stores.values.allSatisfy { $0 == server.check })
            for index in devices.indices where devices[index].state.keyring?.check != server.check {
                if devices[index].next(server) == .drop {
                    devices[index].run(.drop, &server, isCut: false, &random)
                }
                if devices[index].next(server) == .adopt { continue }
                #expect(devices[index].next(server) == .getKey, "\(seed)")
            }
        }
    }

    @Test func `sends nothing to a server that knows less than the device`() throws {
        let first = try #require(Keyring([:]).adding(Bytes32([UInt8](0..<32))!, at: 1))
        let second = try #require(first.adding(Bytes32([UInt8](1...32))!, at: 1))
        func next(
            _ keyring: Keyring?, _ proposal: Keyring?, _ mark: Keyring?, wasSealed: Bool = false
        ) -> SealingStep {
            SealingStep.next(
                keyring: keyring, proposal: proposal, generation: mark?.current ?? 0,
                check: mark?.check, wasSealed: wasSealed, unsealed: Self.stores)
        }
        #expect(next(first, nil, nil) == .restored && next(second, nil, first) == .restored)
        #expect(next(second, nil, nil) == .restored)
        // A device without a key knows it from its sign-in.
        #expect(
            next(nil, nil, nil) == .propose && next(nil, nil, nil, wasSealed: true) == .restored)
        #expect(next(nil, nil, first, wasSealed: true) == .getKey)
        #expect(next(nil, second, nil) == .drop && next(first, second, nil) == .drop)
        #expect(next(first, second, first) == .seal(Self.stores[0]))
        #expect(next(nil, first, nil) == .mark && next(first, second, second) == .adopt)
        #expect(next(nil, nil, first) == .getKey && next(first, nil, second) == .getKey)
        #expect(next(first, nil, first) == .seal(Self.stores[0]))
        #expect(next(first, first, first) == .seal(Self.stores[0]))
        // A mark of somebody else's with the same number.
        let stranger = try #require(Keyring([:]).adding(Bytes32([UInt8](2...33))!, at: 1))
        #expect(next(first, nil, stranger) == .getKey && next(first, second, stranger) == .drop)
        #expect(next(nil, first, stranger) == .drop)
        let confined = first.confined(to: Set(Self.stores))
        #expect(next(confined, nil, first) == .seal(Self.stores[0]))
        #expect(next(nil, Keyring([:]), nil) == .drop)
    }
}
