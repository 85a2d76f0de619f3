// SPDX-License-Identifier: Apache-2.0

import Testing
import Ubiquity
import UbiquityTesting

@Suite("Which devices have a change")
struct DeliveryTests {
    private let two = TwoDevices()

    private func device(
        _ name: String, _ delivery: UbiquityDelivery
    ) throws -> UbiquityDelivery.Device {
        try #require(delivery.devices.first { $0.name == name })
    }

    @Test func `all, once they have saved it and said so`() async throws {
        two.a.set("x", forKey: "k")
        await two.cloud.settle()
        await two.cloud.advance(by: .seconds(61))
        let delivery = try await two.a.delivery(of: "k")
        #expect(delivery.isComplete)
        #expect(delivery.description == "on 2 of 2 devices")
        #expect(delivery.devices.map(\.name) == ["phone", "laptop"])
        #expect(delivery.devices.map(\.isThisDevice) == [true, false])
    }

    @Test func `not those that are offline, and what they lack`() async throws {
        await two.cloud.advance(by: .seconds(61))
        two.laptop.goOffline()
        two.a.set("x", forKey: "k")
        two.a.set("y", forKey: "l")
        await two.cloud.settle()
        await two.cloud.advance(by: .seconds(120))
        let whole = try await two.a.delivery()
        #expect(try device("laptop", whole).changesBehind == 2)
        #expect(try !device("laptop", whole).isCurrent)
        #expect(try device("phone", whole).isCurrent)
        #expect(!whole.isComplete)
        #expect(try await two.a.delivery(of: "other").isComplete)
        two.laptop.goOnline()
        await two.cloud.settle()
        await two.cloud.advance(by: .seconds(61))
        #expect(try await two.a.delivery().isComplete)
    }

    @Test func `not those whose disk is full`() async throws {
        await two.cloud.advance(by: .seconds(61))
        two.laptop.isDiskFull = true
        two.a.set("x", forKey: "k")
        await two.cloud.settle()
        await two.cloud.advance(by: .seconds(120))
        #expect(two.b.string(forKey: "k") == "x")
        #expect(try await !two.a.delivery(of: "k").isComplete)
        two.laptop.isDiskFull = false
        await two.cloud.settle()
        await two.cloud.advance(by: .seconds(61))
        #expect(try await two.a.delivery(of: "k").isComplete)
    }

    @Test func `none but this one of what has not been sent`() async throws {
        await two.cloud.advance(by: .seconds(61))
        two.phone.goOffline()
        two.a.set("x", forKey: "k")
        await two.cloud.settle()
        #expect(try await two.b.delivery(of: "k").isComplete)
        await #expect(throws: UbiquityError.self) { try await two.a.delivery(of: "k") }
    }

    @Test func `as a sequence, now and whenever that changes`() async throws {
        await two.cloud.advance(by: .seconds(61))
        var deliveries = two.a.deliveries.makeAsyncIterator()
        await two.cloud.advance(by: .seconds(1))
        #expect(try await deliveries.next()?.isComplete == true)
        two.laptop.goOffline()
        two.a.set("x", forKey: "k")
        await two.cloud.advance(by: .seconds(120))
        #expect(try await deliveries.next()?.isComplete == false)
        two.laptop.goOnline()
        await two.cloud.advance(by: .seconds(180))
        #expect(try await deliveries.next()?.isComplete == true)
    }

    @Test func `as a sequence, also while the store never rests`() async throws {
        await two.cloud.advance(by: .seconds(61))
        var deliveries = two.a.deliveries.makeAsyncIterator()
        await two.cloud.advance(by: .seconds(1))
        #expect(try await deliveries.next()?.isComplete == true)
        two.laptop.goOffline()
        for number in 0..<30 {
            two.a.set(number, forKey: "k")
            await two.cloud.advance(by: .milliseconds(100))
        }
        // The sequence ends here, and has no later answers.
        two.phone.kill()
        #expect(try await deliveries.next()?.isComplete == false)
    }

    @Test func `with the error of their clocks`() async throws {
        two.laptop.clockError = .seconds(7_200)
        await two.cloud.settle()
        let delivery = try await two.a.delivery()
        #expect(try device("laptop", delivery).clockAhead == 7_200)
        #expect(try device("phone", delivery).clockAhead == 0)
    }

    @Test func `a key that cannot exist, and a device that is signed out, are errors`()
        async throws
    {
        await #expect(throws: UbiquityError.self) { try await two.a.delivery(of: "") }
        two.phone.signOut()
        await two.cloud.settle()
        await #expect(throws: UbiquityError.self) { try await two.a.delivery() }
    }
}
