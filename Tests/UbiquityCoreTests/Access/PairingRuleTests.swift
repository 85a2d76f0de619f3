// SPDX-License-Identifier: Apache-2.0

internal import Testing
internal import UbiquityCore

/// Tests which rights a device may pass on to another one.
struct PairingRuleTests {
    private static let notes = try! StoreIdentifier("notes")
    private static let other = try! StoreIdentifier("other")

    private func rights(
        _ stores: Set<StoreIdentifier>? = nil, until time: Int64? = nil
    ) -> DeviceRights {
        let name = DeviceReference(account: AccountID(rawValue: 1), id: DeviceID(rawValue: 1))
        return DeviceRights(reference: name, stores: stores, expiresMilliseconds: time)
    }

    @Test func `a device passes on what it has itself if nothing is asked for`() {
        #expect(rights().limiting(CredentialTerms()) == CredentialTerms())
        #expect(
            rights([Self.notes], until: 9).limiting(CredentialTerms())
                == CredentialTerms(stores: [Self.notes], latestMilliseconds: 9))
    }

    @Test func `a device never passes on more than it has`() {
        let asked = CredentialTerms(stores: [Self.notes, Self.other], milliseconds: 100)
        #expect(rights().limiting(asked) == asked)
        let limited = rights([Self.notes], until: 50).limiting(asked)
        #expect(limited.stores == [Self.notes])
        #expect(limited.expiry(signingInAt: 10) == 50)
        let elsewhere = rights([Self.other]).limiting(CredentialTerms(stores: [Self.notes]))
        #expect(elsewhere.stores == [])
    }

    @Test func `a credential ends at the earlier of its two ends`() {
        #expect(CredentialTerms().expiry(signingInAt: 10) == nil)
        #expect(CredentialTerms(milliseconds: 5).expiry(signingInAt: 10) == 15)
        #expect(CredentialTerms(latestMilliseconds: 12).expiry(signingInAt: 10) == 12)
        let both = CredentialTerms(milliseconds: 5, latestMilliseconds: 12)
        #expect(both.expiry(signingInAt: 10) == 12 && both.expiry(signingInAt: 1) == 6)
    }

    @Test func `one address has a share of the waiting requests, and all have a bound`() {
        let mine = [String](repeating: "me", count: PairingRule.requestsPerAddressMax - 1)
        #expect(PairingRule.admits(requestFrom: "me", besides: mine))
        #expect(!PairingRule.admits(requestFrom: "me", besides: mine + ["me"]))
        #expect(PairingRule.admits(requestFrom: "you", besides: mine + ["me"]))
        let all = (1..<PairingRule.requestsMax).map { "\($0)" }
        #expect(PairingRule.admits(requestFrom: "you", besides: all))
        #expect(!PairingRule.admits(requestFrom: "you", besides: all + ["0"]))
    }
}
