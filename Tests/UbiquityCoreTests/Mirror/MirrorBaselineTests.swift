// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

/// Tests the mode in which a mirror compares the keys, after it has looked at its store.
@Suite struct `The course of a mirror` {
    private func mode(
        before: MirrorBaseline?, account: String? = nil, isSynced: Bool = false,
        isSignedIn: Bool? = nil, isNew: Bool = false
    ) -> MirrorMode {
        MirroredStore(
            baseline: MirrorBaseline(account: account, isSynced: isSynced),
            isSignedIn: isSignedIn ?? (account != nil), isNew: isNew
        ).mode(since: before)
    }

    private let ann = MirrorBaseline(account: "ann", isSynced: true)

    @Test func `waits for the first download of a device that is signed in, and for no other`() {
        #expect(mode(before: nil, account: "ann") == .wait)
        #expect(mode(before: MirrorBaseline(), account: "ann") == .wait)
        #expect(mode(before: nil, account: "ann", isSynced: true) == .begin)
        #expect(mode(before: nil) == .begin)
        #expect(mode(before: MirrorBaseline()) == .compare)
    }

    @Test func `lets the account's first download decide over what was agreed on before`() {
        let before = MirrorBaseline()
        #expect(mode(before: before, account: "ann", isSynced: true) == .begin)
        let signedIn = MirrorBaseline(account: "ann")
        #expect(mode(before: signedIn, account: "ann", isSynced: true) == .begin)
        #expect(mode(before: ann, account: "ann", isSynced: true) == .compare)
    }

    @Test func `goes on when the device is signed out, and in to the same account again`() {
        #expect(mode(before: ann, account: "ann", isSynced: true, isSignedIn: false) == .compare)
        #expect(mode(before: ann, account: "ann", isSynced: true) == .compare)
    }

    @Test func `replaces everything by another account's values, before its first download too`() {
        #expect(mode(before: ann, account: "bob") == .replace)
        #expect(mode(before: ann, account: "bob", isSynced: true) == .replace)
        #expect(mode(before: MirrorBaseline(account: "ann"), account: "bob") == .replace)
        #expect(mode(before: MirrorBaseline(account: "bob"), account: "bob") == .wait)
    }

    @Test func `removes what was wiped, and keeps what a lost store had`() {
        #expect(mode(before: ann) == .replace)
        #expect(mode(before: ann, isNew: true) == .begin)
        #expect(mode(before: MirrorBaseline(), isNew: true) == .begin)
    }

    @Test func `waits for the values of the same account after the store was lost`() {
        #expect(mode(before: ann, account: "ann", isNew: true) == .wait)
        #expect(mode(before: ann, account: "ann", isSynced: true) == .compare)
    }
}
