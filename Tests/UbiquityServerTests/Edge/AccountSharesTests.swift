// SPDX-License-Identifier: Apache-2.0

internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

struct AccountSharesTests {
    private let ada = AccountID(rawValue: 1)
    private let bob = AccountID(rawValue: 2)

    private func rights(_ account: AccountID, _ id: UInt64 = 1, isConfined: Bool = false)
        -> DeviceRights
    {
        DeviceRights(
            reference: DeviceReference(account: account, id: DeviceID(rawValue: id)),
            stores: isConfined ? [Sample.store.identifier] : nil)
    }

    @Test func `an account has a quarter of all, a confined device a quarter of that`() throws {
        let all = ByteBudget(max: 1_600)
        let shares = AccountShares(of: all, placesMax: 9)
        let confined = try shares.take(rights(ada, 2, isConfined: true))
        #expect(!confined.take(101))
        #expect(confined.take(100))
        #expect(confined.isFull)
        let own = try shares.take(rights(ada))
        #expect(!own.take(301))
        #expect(own.take(300))
        #expect(own.isFull)
        let other = try shares.take(rights(bob))
        #expect(!other.isFull && other.take(400))
        #expect(all.bytes == 800)
        confined.end()
        #expect(!confined.take(1) && all.bytes == 700 && !own.isFull)
        own.give(300)
        own.note(500)
        #expect(own.isFull && all.bytes == 900)
    }

    @Test func `all confined devices of an account have one share together`() throws {
        let shares = AccountShares(of: ByteBudget(max: 1_600), placesMax: 8)
        let first = try shares.take(rights(ada, 2, isConfined: true))
        let second = try shares.take(rights(ada, 3, isConfined: true))
        #expect(first.take(60) && !second.take(41) && second.take(40))
        #expect(second.isFull)
        #expect(throws: Busy.self) { try shares.take(rights(ada, 4, isConfined: true)) }
        let own = try shares.take(rights(ada))
        let others = try shares.take(rights(bob, 2, isConfined: true))
        #expect(own.take(300) && others.take(100))
        first.end()
        #expect(try shares.take(rights(ada, 4, isConfined: true)).take(60))
    }

    @Test func `everybody's share together has a bound`() throws {
        let shares = AccountShares(of: ByteBudget(max: 100), placesMax: 9, bytesMin: 60)
        let first = try shares.take(rights(ada))
        let second = try shares.take(rights(bob))
        #expect(first.take(60) && !first.take(1))
        #expect(!second.take(41) && second.take(40))
    }

    @Test func `a place is given back when it is released`() throws {
        let all = ByteBudget(max: 1_600)
        let shares = AccountShares(of: all, placesMax: 4)
        do {
            let confined = try shares.take(rights(ada, 2, isConfined: true))
            #expect(throws: Busy.self) { try shares.take(rights(ada, 2, isConfined: true)) }
            let own = try (0..<3).map { _ in try shares.take(rights(ada)) }
            #expect(throws: Busy.self) { try shares.take(rights(ada)) }
            #expect(confined.take(10) && own[0].take(10))
            _ = try shares.take(rights(bob))
        }
        #expect(all.bytes == 0)
        _ = try shares.take(rights(ada, 2, isConfined: true))
    }
}
