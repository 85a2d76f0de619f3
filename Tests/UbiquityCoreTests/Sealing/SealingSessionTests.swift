// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `What a device gives and takes in a sealed account` {
    private static let keyring = Keyring([
        1: .account(Bytes32([UInt8](0..<32))!), 2: .account(Bytes32([UInt8](1...32))!),
    ])
    private static let check = keyring.check

    private func session(_ keyring: Keyring? = nil, isSealed: Bool = false) -> SealingSession {
        SealingSession(account: "A", keyring: keyring, isSealed: isSealed)
    }

    // MARK: - Giving

    @Test func `a device that is signed in learns what its approver knows`() throws {
        let (a, b) = (try StoreIdentifier("a"), try StoreIdentifier("b"))
        let own = session(Self.keyring)
        // The server has no say in that.
        for generation: UInt32 in [0, 2, 9] {
            #expect(own.handover(toStores: [], generation: generation) == .keys(Self.keyring))
        }
        let confined = Self.keyring.confined(to: [a])
        #expect(own.handover(toStores: [a], generation: 2) == .keys(confined))
        #expect(session(confined).handover(toStores: [], generation: 2) == .keys(confined))
        #expect(session(confined).handover(toStores: [b], generation: 2) == .noKey)
        #expect(session(isSealed: true).handover(toStores: [], generation: 0) == .noKey)
        #expect(session().handover(toStores: [], generation: 2) == .noKey)
        #expect(session().handover(toStores: [], generation: 0) == .notSealed)
    }

    // MARK: - Signing in

    /// - Parameter mark: The generation that the server names.
    private func signIn(
        _ handover: Handover?, _ before: SealingSession, mark: UInt32, isAwaited: Bool = true,
        hadSealed: Bool = false
    ) throws -> (session: SealingSession, doubt: UnsealedDoubt?) {
        var session = before
        let doubt = try session.signIn(
            handover, isAwaited: isAwaited, hadSealed: hadSealed, generation: mark,
            check: mark == 0 ? nil : Self.check)
        return (session, doubt)
    }

    @Test func `a server alone makes no device believe that an account is clear`() throws {
        for isAwaited in [false, true] {
            for hadSealed in [false, true] {
                let found = try signIn(
                    nil, session(), mark: 0, isAwaited: isAwaited, hadSealed: hadSealed)
                #expect(found.doubt == (isAwaited ? .unanswered : hadSealed ? .hadSealed : nil))
                #expect(found.session == session())
            }
        }
        for before in [session(isSealed: true), session(Self.keyring)] {
            for handover: Handover? in [nil, .notSealed] {
                let found = try signIn(handover, before, mark: 0)
                #expect(found.doubt == .wasSealed && found.session == before)
                var lifted = found.session
                lifted.unseal()
                #expect(lifted == session())
            }
        }
        #expect(try signIn(.notSealed, session(), mark: 0).doubt == nil)
        #expect(try signIn(.notSealed, session(), mark: 0, hadSealed: true).doubt == .hadSealed)
    }

    @Test func `a device is locked if anybody says that the account is sealed`() throws {
        for (handover, mark): (Handover?, UInt32) in [
            (nil, 2), (.notSealed, 2), (.noKey, 2), (.noKey, 0),
        ] {
            let found = try signIn(handover, session(), mark: mark)
            #expect(found.doubt == nil && found.session == session(isSealed: true))
        }
    }

    @Test func `keys are taken that the account is sealed with, or was`() throws {
        let taken = try signIn(.keys(Self.keyring), session(), mark: 2)
        #expect(taken.session == session(Self.keyring) && taken.doubt == nil)
        let older = Self.keyring.newest(2).confined(to: [try StoreIdentifier("a")])
        #expect(try signIn(.keys(older), session(), mark: 3).session == session(older))
        for mark: UInt32 in [0, 1] {
            #expect(throws: KeyringRefusal.other) {
                try signIn(.keys(Self.keyring), session(), mark: mark)
            }
        }
        let other = Keyring([2: .account(Bytes32([UInt8](2...33))!)])
        #expect(throws: KeyringRefusal.other) { try signIn(.keys(other), session(), mark: 2) }
        #expect(throws: KeyringRefusal.unrelated) {
            try signIn(.keys(Keyring([1: other.roots[2]!])), session(Self.keyring), mark: 2)
        }
    }

    // MARK: - Unlocking

    @Test func `a device is unlocked by the account's present keys`() throws {
        var locked = session(isSealed: true)
        #expect(throws: KeyringRefusal.notSealed) {
            try locked.unlock(with: Self.keyring, generation: 0, check: nil)
        }
        #expect(throws: KeyringRefusal.older) {
            try locked.unlock(with: Self.keyring, generation: 3, check: Self.check)
        }
        #expect(locked == session(isSealed: true))
        try locked.unlock(with: Self.keyring, generation: 2, check: Self.check)
        #expect(locked == session(Self.keyring))
    }

    @Test func `what unlocks is a code or the recovery key, and all else is told why`() throws {
        let secret = try #require(HandoverSecret([UInt8](0..<16)))
        let key = try #require(RecoveryKey([UInt8](0..<20)))
        let code = KeyCode(front: "unlock", secret: secret).text
        #expect(try UnlockSecret(given: " \(code)\n") == .handover(secret))
        #expect(try UnlockSecret(given: key.text + "\u{A0}") == .recovery(key))
        for (text, refusal): (String, KeyringRefusal) in [
            ("", .mistyped), (String(code.dropLast()), .mistyped),
            (secret.text, .recoveryKeyLength(30)), ("7KQ2-M9XD", .recoveryKeyLength(8)),
            (String(key.text.reversed()), .recoveryKeyMistyped),
        ] { #expect(throws: refusal) { try UnlockSecret(given: text) } }
    }
}
