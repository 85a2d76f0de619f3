// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// What a server takes of devices that seal an account, or end that.
@Suite struct `The sealing of an account` {
    private static let now: Int64 = 1_800_000_000_000
    /// The greatest generation that a server takes then.
    private static let latest = Keyring.firstGeneration(at: now / 1_000 + 86_400)

    private static func keyring(_ generation: UInt32, fill: UInt8 = 7) -> Keyring {
        Keyring([generation: .account(Bytes32([UInt8](repeating: fill, count: 32))!)])
    }

    private static func mark(_ keyring: Keyring, recovery: [UInt8] = [1]) -> AccountSealing {
        AccountSealing(
            generation: keyring.current, check: keyring.check!, recovery: recovery)!
    }

    private static func proof(_ keyring: Keyring) -> Bytes32? { keyring.proof(of: keyring.current) }

    private static let author = SealingState.Author(
        device: DeviceID(rawValue: 9), name: "desk", milliseconds: now)

    /// Sealed with this key.
    private static func sealed(_ keyring: Keyring) throws -> SealingState {
        var state = SealingState()
        #expect(try state.take(mark(keyring), proof: nil, by: author) == true)
        return state
    }

    /// The refusal of a mark; nil if it is taken.
    private func refusal(
        _ state: SealingState, _ mark: AccountSealing, _ proof: Bytes32? = nil
    ) -> SealingRefusal? {
        var after = state
        do throws(SealingRefusal) {
            _ = try after.take(mark, proof: proof, by: Self.author)
            return nil
        } catch {
            #expect(after == state)
            return error
        }
    }

    @Test func `is begun by any device of the account, and names it`() throws {
        let state = try Self.sealed(Self.keyring(5))
        #expect(state.generation == 5 && state.greatest == 5 && state.author == Self.author)
        #expect(AccountSealing(generation: 0, check: Self.keyring(5).check!, recovery: []) == nil)
        let long = [UInt8](repeating: 0, count: 4_097)
        #expect(AccountSealing(generation: 1, check: Self.keyring(5).check!, recovery: long) == nil)
    }

    @Test func `goes on with a later key, or another wrap, by the proof of the present key alone`()
        throws
    {
        let first = Self.keyring(5)
        let state = try Self.sealed(first)
        let (next, far) = (Self.mark(Self.keyring(6, fill: 8)), Self.mark(Self.keyring(900)))
        let wrap = Self.mark(first, recovery: [2])
        for mark in [next, far, wrap] {
            #expect(refusal(state, mark, Self.proof(first)) == nil)
            #expect(refusal(state, mark) == .noProof)
            #expect(refusal(state, mark, Self.proof(Self.keyring(5, fill: 8))) == .noProof)
            #expect(refusal(state, mark, first.check) == .noProof)
        }
        // The proof of the next key is none of the present one.
        #expect(refusal(state, next, Self.proof(Self.keyring(6, fill: 8))) == .noProof)
        let other = Self.mark(Self.keyring(5, fill: 8))
        for mark in [other, Self.mark(Self.keyring(4))] {
            let refused = SealingRefusal.otherGeneration(5, asked: mark.generation)
            #expect(refusal(state, mark, Self.proof(first)) == refused)
        }
    }

    @Test func `is not changed by the mark that it has, whatever is shown`() throws {
        let first = Self.keyring(5)
        var state = try Self.sealed(first)
        for proof in [nil, Self.proof(first), Self.proof(Self.keyring(5, fill: 8))] {
            #expect(try state.take(Self.mark(first), proof: proof, by: Self.author) == false)
        }
    }

    @Test func `another wrap leaves the device that sealed it`() throws {
        var state = try Self.sealed(Self.keyring(5))
        var later = Self.author
        later.device = DeviceID(rawValue: 10)
        let proof = Self.proof(Self.keyring(5))
        #expect(
            try state.take(Self.mark(Self.keyring(5), recovery: [2]), proof: proof, by: later)
                == true)
        #expect(state.author == Self.author)
        #expect(try state.take(Self.mark(Self.keyring(6)), proof: proof, by: later) == true)
        #expect(state.author == later)
    }

    @Test func `takes no number beyond the clock and a day, and none twice, also after a reset`()
        throws
    {
        let ahead = Self.mark(Self.keyring(Self.latest + 1))
        #expect(refusal(SealingState(), ahead) == .generationAhead(Self.now))
        #expect(refusal(SealingState(), Self.mark(Self.keyring(.max))) != nil)
        var state = try Self.sealed(Self.keyring(Self.latest))
        let proof = Self.proof(Self.keyring(Self.latest))
        #expect(refusal(state, ahead, proof) == .generationAhead(Self.now))
        #expect(try state.reset(proof: proof, at: Self.now, by: .operatorLocally) == true)
        #expect(state.generation == 0 && state.mark == nil && state.author == nil)
        for generation in [1, Self.latest - 1, Self.latest] {
            #expect(refusal(state, Self.mark(Self.keyring(generation))) == .spentGeneration)
        }
        var late = Self.author
        late.milliseconds += 60_000
        #expect(try state.take(ahead, proof: nil, by: late) == true)
    }

    @Test func `is reset at once with the proof, by the operator, or a week after without`() throws
    {
        let key = Self.keyring(5)
        let (device, proof) = (
            AuditActor.device(DeviceID(rawValue: 9)), Self.proof(Self.keyring(5))
        )
        let due = Self.now + 7 * 86_400_000
        var fresh = SealingState()
        for actor in [device, .operatorLocally] {
            #expect(throws: SealingRefusal.notSealed) {
                try fresh.reset(proof: proof, at: Self.now, by: actor)
            }
        }
        for actor in [device, .operatorByCredential] {
            var state = try Self.sealed(key)
            #expect(
                try state.reset(proof: actor == device ? proof : nil, at: Self.now, by: actor)
                    == true)
            #expect(state.mark == nil)
        }
        var state = try Self.sealed(key)
        #expect(throws: SealingRefusal.noProof) {
            try state.reset(proof: key.check, at: Self.now, by: device)
        }
        #expect(try state.reset(proof: nil, at: due, by: .housekeeping) == false)
        #expect(try state.reset(proof: nil, at: Self.now, by: device) == true)
        #expect(state.ends == due && state.mark == Self.mark(key))
        #expect(try state.reset(proof: nil, at: Self.now + 5, by: device) == false)
        #expect(try state.reset(proof: nil, at: due - 1, by: .housekeeping) == false)
        #expect(state.ends == due && state.mark != nil)
        #expect(try state.reset(proof: nil, at: due, by: .housekeeping) == true)
        #expect(state.mark == nil && state.ends == nil)
    }

    @Test func `an announced reset is withdrawn by a proof, and by every mark with one`() throws {
        let key = Self.keyring(5)
        var announced = try Self.sealed(key)
        #expect(
            try announced.reset(proof: nil, at: Self.now, by: .device(DeviceID(rawValue: 9)))
                == true)
        let proof = try #require(Self.proof(key))
        var state = announced
        #expect(state.withdrawReset(proof: key.check!) == false && state == announced)
        #expect(state.withdrawReset(proof: proof) && state.ends == nil)
        #expect(state.withdrawReset(proof: proof) == false)
        for mark in [Self.mark(key, recovery: [2]), Self.mark(Self.keyring(6))] {
            state = announced
            #expect(try state.take(mark, proof: proof, by: Self.author) == true)
            #expect(state.ends == nil)
        }
        state = announced
        #expect(try state.take(Self.mark(key), proof: nil, by: Self.author) == false)
        #expect(state == announced)
    }

    @Test func `lets only devices with the present key replace a store`() throws {
        let key = Self.keyring(5)
        let state = try Self.sealed(key)
        func refusal(_ generation: UInt32, _ proof: Bytes32?) -> SealingRefusal? {
            let whole = WholeStore(
                cursor: Position(epoch: 1, revision: 1).cursor, generation: generation, records: [],
                proof: proof)
            do throws(SealingRefusal) { try state.check(whole) } catch { return error }
            return nil
        }
        #expect(refusal(5, Self.proof(key)) == nil)
        #expect(refusal(5, nil) == .noProof)
        #expect(refusal(5, key.check) == .noProof)
        #expect(refusal(4, nil) == .otherGeneration(5, asked: 4))
        #expect(key.confined(to: []).proof(of: 5) == nil)
    }

    @Test func `is kept bit by bit, and nothing else is read as one`() throws {
        let key = Self.keyring(0x0102_0304)
        var state = SealingState()
        #expect(state.bytes == nil && SealingState(bytes: nil, ends: nil) == state)
        let mark = Self.mark(key, recovery: [7, 0, 9])
        var author = Self.author
        author.name = "Büro"
        #expect(try state.take(mark, proof: nil, by: author) == true)
        let bytes = try #require(state.bytes)
        #expect(bytes[..<4] == [1, 2, 3, 4] && Array(bytes[4..<36]) == key.check!.bytes)
        #expect(SealingState(bytes: bytes, ends: nil) == state)
        for count in 0..<62 { #expect(SealingState(bytes: Array(bytes[..<count]), ends: 1) == nil) }
        let greater = [UInt8](repeating: 255, count: 4) + bytes[4...]
        #expect(SealingState(bytes: greater, ends: nil) == nil)
        #expect(try state.reset(proof: nil, at: Self.now, by: .device(author.device)) == true)
        #expect(SealingState(bytes: state.bytes, ends: state.ends) == state)
        #expect(try state.reset(proof: nil, at: Self.now, by: .operatorLocally) == true)
        #expect(SealingState(bytes: state.bytes, ends: nil) == state && state.greatest > 0)
    }
}
