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

    @Test func `what confined devices have added ends with them, whoever added whom`() {
        func ids(_ numbers: Int...) -> Set<DeviceID> {
            Set(numbers.map { DeviceID(rawValue: UInt64($0)) })
        }
        func adders(_ pairs: (Int, Int)...) -> [DeviceID: DeviceID] {
            Dictionary(
                uniqueKeysWithValues: pairs.map {
                    (DeviceID(rawValue: UInt64($0)), DeviceID(rawValue: UInt64($1)))
                })
        }
        let family = adders((2, 1), (3, 1), (4, 3), (5, 4), (7, 6))
        #expect(PairingRule.ending(with: ids(9), family) == ids(9))
        #expect(PairingRule.ending(with: ids(2), family) == ids(2))
        #expect(PairingRule.ending(with: ids(3), family) == ids(3, 4, 5))
        #expect(PairingRule.ending(with: ids(1, 6), family) == ids(1, 2, 3, 4, 5, 6, 7))
        // No server writes such a thing, but a file may have it.
        #expect(PairingRule.ending(with: ids(1), adders((1, 2), (2, 1), (3, 3))) == ids(1, 2))
        #expect([1, 4, 9, 256].map(PairingRule.addedDevicesMax) == [1, 1, 2, 64])
    }

    @Test func `all confined devices of an account have one share`() {
        #expect(rights([Self.notes]).share == rights([Self.other]).share)
        #expect(rights().share == .device(rights().reference))
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
