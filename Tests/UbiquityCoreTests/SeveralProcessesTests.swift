// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `Several processes of one device` {
    let cloud = TestCloud()

    private func settle(_ processes: TestDevice...) {
        for _ in 0..<100 {
            cloud.settle()
            var isDone = true
            for process in processes where process.step() { isDone = false }
            if isDone { return }
        }
        Issue.record("the processes did not come to rest")
    }

    @Test func `see each other's writes, and one of them sends for both`() throws {
        let (app, other) = (cloud.device(), cloud.device())
        let helper = app.helper()
        settle(helper)
        helper["x"] = .integer(1)
        settle(helper)
        #expect(app["x"] == .integer(1))
        #expect(other["x"] == .integer(1))
        #expect(app.takeNotices() == [Notice(.serverChange, [try Key("x")])])
        #expect(helper.takeNotices() == [])
        other["y"] = .integer(2)
        settle(helper)
        #expect(helper["y"] == .integer(2))
        #expect(helper.takeNotices() == [Notice(.serverChange, [try Key("y")])])
    }

    @Test func `that write one key at once agree on the later write`() {
        let app = cloud.device()
        let helper = app.helper()
        settle(helper)
        app["x"] = .integer(1)
        cloud.pass(milliseconds: 5)
        helper["x"] = .integer(2)
        settle(helper)
        #expect(app["x"] == .integer(2))
        #expect(helper["x"] == .integer(2))
        #expect(cloud.server["x"] == .integer(2))
    }

    @Test func `get their round trip from the one that leads, its failure included`() {
        let app = cloud.device()
        let helper = app.helper()
        settle(helper)
        let good = helper.requestSync()
        settle(helper)
        #expect(helper.finished[good] == .some(nil))
        app.goOffline()
        let bad = helper.requestSync()
        settle(helper)
        cloud.pass(milliseconds: 2_000)
        settle(helper)
        #expect(helper.finished[bad]??.detail == "offline")
    }

    @Test func `take over when the leader is gone, its requests included`() {
        let leader = cloud.device()
        let other = cloud.device()
        let helper = leader.helper()
        while leader.step() || helper.step() {}
        // From here the leader does nothing any more.
        leader.cut()
        let request = helper.requestSync()
        helper["x"] = .integer(1)
        while helper.step() {}
        #expect(other["x"] == nil)
        helper.tell(.leading(true))
        while helper.step() || other.step() {}
        #expect(other["x"] == .integer(1))
        #expect(helper.finished[request] == .some(nil))
    }
}
