// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

/// What a mirror finds when it looks at its store, and how it then looks at the keys.
@Suite struct `The course of a mirror` {
    private func course(
        before: MirrorPact?, account: String? = nil, isSynced: Bool = false,
        isSignedIn: Bool? = nil, isNew: Bool = false
    ) -> MirrorCourse {
        MirroredStore(
            pact: MirrorPact(account: account, isSynced: isSynced),
            isSignedIn: isSignedIn ?? (account != nil), isNew: isNew
        ).course(since: before)
    }

    private let ann = MirrorPact(account: "ann", isSynced: true)

    @Test func `waits for the first download of a device that is signed in, and for no other`() {
        #expect(course(before: nil, account: "ann") == .wait)
        #expect(course(before: MirrorPact(), account: "ann") == .wait)
        #expect(course(before: nil, account: "ann", isSynced: true) == .begin)
        #expect(course(before: nil) == .begin)
        #expect(course(before: MirrorPact()) == .compare)
    }

    @Test func `lets the account's first download decide over what was agreed on before`() {
        let before = MirrorPact()
        #expect(course(before: before, account: "ann", isSynced: true) == .begin)
        let signedIn = MirrorPact(account: "ann")
        #expect(course(before: signedIn, account: "ann", isSynced: true) == .begin)
        #expect(course(before: ann, account: "ann", isSynced: true) == .compare)
    }

    @Test func `goes on when the device is signed out, and in to the same account again`() {
        #expect(course(before: ann, account: "ann", isSynced: true, isSignedIn: false) == .compare)
        #expect(course(before: ann, account: "ann", isSynced: true) == .compare)
    }

    @Test func `replaces everything by another account's values, before its first download too`() {
        #expect(course(before: ann, account: "bob") == .replace)
        #expect(course(before: ann, account: "bob", isSynced: true) == .replace)
        #expect(course(before: MirrorPact(account: "ann"), account: "bob") == .replace)
        #expect(course(before: MirrorPact(account: "bob"), account: "bob") == .wait)
    }

    @Test func `removes what was wiped, and keeps what a lost store had`() {
        #expect(course(before: ann) == .replace)
        #expect(course(before: ann, isNew: true) == .begin)
        #expect(course(before: MirrorPact(), isNew: true) == .begin)
    }

    @Test func `waits for the values of the same account after the store was lost`() {
        #expect(course(before: ann, account: "ann", isNew: true) == .wait)
        #expect(course(before: ann, account: "ann", isSynced: true) == .compare)
    }
}
