// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Ubiquity
import UbiquityTesting

@Suite("A mistake in a test ends it with a sentence")
struct MisuseTests {
    private func sentence(_ result: ExitTest.Result?) -> String {
        String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    }

    @Test func `a store of a process that has ended`() async {
        let result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            let phone = TestCloud().newDevice("phone")
            let store = phone.openStore("TEAM.com.example.app")
            phone.kill()
            store.set("x", forKey: "k")
        }
        #expect(sentence(result).contains("the process \"app\" on \"phone\" had ended"))
    }

    @Test func `an account of another cloud`() async {
        let result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            let other = TestCloud().newAccount("other")
            TestCloud().newDevice("phone").signIn(to: other)
        }
        #expect(sentence(result).contains("\"other\" is an account of another cloud"))
    }

    @Test func `a name that is not a store's`() async {
        let result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            _ = TestCloud().newDevice("phone").openStore("not a name")
        }
        #expect(sentence(result).contains("\"not a name\""))
    }

    @Test func `a network on which nothing can settle`() async {
        let result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            let cloud = TestCloud()
            let phone = cloud.newDevice("phone")
            phone.network.lostRequests = 0.999
            phone.openStore("TEAM.com.example.app").set("x", forKey: "k")
            cloud.settle()
        }
        #expect(sentence(result).contains("did not settle within an hour of its time"))
        #expect(sentence(result).contains("waits to send \"k\""))
    }
}
