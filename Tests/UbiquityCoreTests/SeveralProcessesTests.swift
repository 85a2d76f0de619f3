// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `Several processes of one device` {
    let cloud = SteppedCloud()

    private func settle(_ processes: SteppedDevice...) {
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

    /// - Returns: A leader that stands still before it has saved what it received, a process that
    ///   follows, and the device that wrote it.
    private func leaderThatHasNotSaved() -> (SteppedDevice, SteppedDevice, SteppedDevice) {
        let (app, other) = (cloud.device(), cloud.device())
        let helper = app.helper()
        settle(helper)
        other["x"] = .integer(1)
        while other.step() {}
        _ = app.step()
        #expect(app["x"] == .integer(1))
        return (app, helper, other)
    }

    @Test func `that both believe to lead lose nothing that one of them has received`() {
        let (app, helper, other) = leaderThatHasNotSaved()
        app.goOffline()
        helper.receive(.leading(true))
        other["x"] = .integer(2)
        while other.step() {}
        while helper.step() {}
        #expect(helper["x"] == .integer(2))
        while app.step() {}
        app.receive(.leading(false))
        while helper.step() {}
        #expect(helper["x"] == .integer(2))
        #expect(app["x"] == .integer(2))
    }

    @Test func `begin to lead with what the one before saves late, and as far as that came`() {
        let (app, helper, _) = leaderThatHasNotSaved()
        helper.goOffline()
        helper.receive(.leading(true))
        while app.step() {}
        while helper.step() {}
        #expect(helper["x"] == .integer(1))
        #expect(helper.engine.meta.cursor == app.engine.meta.cursor)
    }

    @Test func `are each told once of their first sync, and keep what the app wrote since`() {
        let other = cloud.device()
        other["x"] = .integer(1)
        cloud.settle()
        let app = cloud.device()
        app.disk.isFull = true
        while app["x"] == nil, app.step() {}
        #expect(app.takeNotices().map(\.reason) == [.initialSync])
        app["x"] = .integer(2)
        // The leader stands still before it has saved that.
        app.disk.isFull = false
        let helper = app.helper()
        helper.receive(.leading(true))
        while helper.step() {}
        #expect(helper.takeNotices().map(\.reason) == [.initialSync])
        cloud.pass(milliseconds: 5_000)
        while app.step() || helper.step() {}
        #expect(app.takeNotices().allSatisfy { $0.reason != .initialSync })
        #expect(app["x"] == .integer(2) && cloud.server["x"] == .integer(2))
    }

    @Test func `that has the lease leads again after one that stood still has led beside it`() {
        let app = cloud.device()
        let helper = app.helper()
        settle(helper)
        for (key, process) in [("a", app), ("b", helper)] {
            process.happened(.leading(file: process.driver.file, true))
            process[key] = .integer(1)
            while process.step() {}
        }
        while app.step() {}
        #expect(!app.engine.isLeading)
        helper.happened(.leading(file: helper.driver.file, false))
        cloud.pass(milliseconds: Driver.leadAgainMilliseconds)
        while app.step() || helper.step() {}
        #expect(app.engine.isLeading && !helper.engine.isLeading)
        #expect(cloud.server["a"] == .integer(1) && cloud.server["b"] == .integer(1))
    }

    @Test func `that lead several times take a request of a follower once`() {
        let app = cloud.device()
        let helper = app.helper()
        let third = app.helper()
        settle(helper, third)
        app.goOffline()
        let request = third.requestSync()
        while third.step() {}
        helper.goOffline()
        for leads in [true, false, true, false] {
            helper.receive(.leading(leads))
            while helper.step() {}
        }
        helper["x"] = .integer(1)
        for _ in 0..<1_000 where !helper.step() { break }
        #expect(!helper.step())
        #expect(third.finished[request] == nil)
    }

    @Test
    func `write over a part of a transaction that they did not know of, and send both as one`()
        throws
    {
        let app = cloud.device()
        let helper = app.helper()
        settle(helper)
        app.goOffline()
        try app.write(["a": .integer(1), "b": .integer(2)])
        while app.step() {}
        cloud.pass(milliseconds: 5)
        try helper.write(["b": .integer(3), "c": .integer(4)])
        while helper.step() || app.step() {}
        app.goOnline()
        while app.step() {}
        let push = try #require(app.pushes.last)
        #expect(push.transactions.map { $0.writes.map(\.key.string) } == [["a", "b", "c"]])
        #expect(cloud.server["b"] == .integer(3))
    }

    @Test func `do not end a round trip before what another one has changed is sent again`() throws
    {
        let app = cloud.device()
        let helper = app.helper()
        settle(helper)
        (app.holdsStream, app.holdsPulls) = (true, true)
        try app.write(["a": .integer(1), "b": .integer(2)])
        let request = app.requestSync()
        while app.step() {}
        #expect(app.pushes.count == 1)
        cloud.pass(milliseconds: 5)
        try helper.write(["b": .integer(3), "c": .integer(4)])
        app.holdsAnswers = true
        while helper.step() || app.step() {}
        #expect(app.pushes.count == 2)
        app.answerPulls()
        while app.step() {}
        #expect(app.finished[request] == nil)
        app.answer()
        app.holdsStream = false
        for _ in 1...3 {
            settle(helper)
            cloud.pass(milliseconds: Backoff.maxMilliseconds)
        }
        #expect(app.finished[request] == .some(nil))
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
        helper.receive(.leading(true))
        while helper.step() || other.step() {}
        #expect(other["x"] == .integer(1))
        #expect(helper.finished[request] == .some(nil))
    }

    // MARK: - A leader that was stopped

    /// - Returns: A leader, and a process that follows and has had one round trip through it.
    private func leaderAndFollower() -> (SteppedDevice, SteppedDevice) {
        let leader = cloud.device()
        let helper = leader.helper()
        settle(helper)
        let first = helper.requestSync()
        settle(helper)
        #expect(helper.finished[first] == .some(nil))
        return (leader, helper)
    }

    @Test func `wait for one that was stopped for some seconds, and are told why`() {
        let (leader, helper) = leaderAndFollower()
        let request = helper.requestSync()
        helper["x"] = .integer(1)
        for second in 1...10 {
            while helper.step() {}
            #expect(helper.finished[request] == nil, "\(second)")
            #expect(!helper.engine.status.isHeldUp)
            cloud.pass(milliseconds: 1_000)
        }
        while helper.step() {}
        let failure = helper.finished[request] ?? nil
        #expect(failure?.detail.contains("does not respond") == true)
        #expect(helper.engine.status.isHeldUp)
        #expect(helper.engine.nextWake == nil)
        // It goes on.
        while leader.step() || helper.step() {}
        #expect(!helper.engine.status.isHeldUp)
        #expect(cloud.server["x"] == .integer(1))
        let next = helper.requestSync()
        settle(helper)
        #expect(helper.finished[next] == .some(nil))
    }

    @Test func `wait for one that is at work for as long as that takes`() {
        let (leader, helper) = leaderAndFollower()
        leader.holdsPulls = true
        let request = helper.requestSync()
        for _ in 0..<120 {
            while leader.step() || helper.step() {}
            cloud.pass(milliseconds: 1_000)
        }
        #expect(helper.finished[request] == nil)
        leader.answer()
        settle(helper)
        #expect(helper.finished[request] == .some(nil))
    }

    @Test func `do not wait for one that is stopped while it is at work`() {
        let (leader, helper) = leaderAndFollower()
        leader.holdsPulls = true
        let request = helper.requestSync()
        while leader.step() || helper.step() {}
        for _ in 0..<60 {
            while helper.step() {}
            cloud.pass(milliseconds: 1_000)
        }
        let failure = helper.finished[request] ?? nil
        #expect(failure?.detail.contains("does not respond") == true)
    }

    @Test func `ask twice, so that none is called silent for the machine's sleep`() {
        let (leader, helper) = leaderAndFollower()
        let request = helper.requestSync()
        while helper.step() {}
        // Both slept.
        cloud.pass(milliseconds: 3_600_000)
        while helper.step() {}
        settle(helper)
        #expect(helper.finished[request] == .some(nil))
        withExtendedLifetime(leader) {}
    }

    /// Has the process save, after another one has.
    private func conflict(_ process: SteppedDevice) {
        process.disk.version += 1
        while let effect = process.engine.nextEffect(at: process.reading) {
            guard case .save(let batch) = effect else { continue }
            let answer = process.disk.save(batch)
            process.receive(answer)
            if case .saveConflicted = answer { return }
        }
        Issue.record("nothing was saved")
    }

    @Test(arguments: [1, 2])
    func `do not call one silent that is at work because their asking again conflicts`(
        conflicts: Int
    ) {
        let (leader, helper) = leaderAndFollower()
        leader.holdsPulls = true
        let request = helper.requestSync()
        while helper.step() {}
        // The leader is slow to see it.
        cloud.pass(milliseconds: LeaderMonitor.patienceMilliseconds)
        for _ in 0..<conflicts { conflict(helper) }
        while leader.step() || helper.step() {}
        for _ in 0..<60 {
            cloud.pass(milliseconds: 1_000)
            while leader.step() || helper.step() {}
            #expect(helper.finished[request] == nil)
            #expect(!helper.engine.status.isHeldUp)
        }
        leader.answer()
        settle(helper)
        #expect(helper.finished[request] == .some(nil))
    }

    @Test func `ask again although the asking conflicts`() {
        let (leader, helper) = leaderAndFollower()
        let request = helper.requestSync()
        while helper.step() {}
        let asked = helper.disk.meta.syncsRequested
        cloud.pass(milliseconds: LeaderMonitor.patienceMilliseconds)
        conflict(helper)
        while helper.step() {}
        #expect(helper.disk.meta.syncsRequested == asked + 1)
        #expect(helper.finished[request] == nil)
        withExtendedLifetime(leader) {}
    }

    @Test func `do not call one silent that keeps being asked`() {
        let (leader, helper) = leaderAndFollower()
        leader.holdsPulls = true
        for _ in 0..<20 {
            _ = helper.requestSync()
            while helper.step() {}
            // It sees a request, and the next one is made before it has said so.
            while leader.step() {}
            _ = helper.requestSync()
            conflict(helper)
            while helper.step() {}
            cloud.pass(milliseconds: 3_000)
            #expect(!helper.engine.status.isHeldUp)
            #expect(helper.finished.count == 1)
        }
    }
}
