// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `A device that changes its account` {
    let home = SteppedCloud()
    let work = SteppedCloud()

    @Test func `takes the other account's values, whatever the timestamps, and is told which`()
        throws
    {
        let (device, workDisk) = (home.device(), TestDisk())
        let colleague = work.device()
        colleague["x"] = .integer(1)
        colleague["same"] = .integer(7)
        work.settle()
        // What this device had of the other account before.
        device.turn(to: "work", in: work, workDisk)
        work.settle()
        settle(device)
        device.turn(to: "account", in: home, TestDisk())
        settle(device)
        device["x"] = .integer(2)
        device["same"] = .integer(7)
        device["mine"] = .integer(3)
        settle(device)
        _ = device.takeNotices()

        device.turn(to: "work", in: work, workDisk)
        #expect(device["x"] == .integer(1))
        #expect(device["mine"] == nil)
        settle(device)
        #expect(
            device.takeNotices() == [Notice(.accountChange, [try Key("x"), try Key("mine")])])
        #expect(colleague["mine"] == nil)
        #expect(work.server["x"] == .integer(1))
    }

    @Test func `keeps its unsynced writes parked, and sends them when the account returns`() throws
    {
        let (device, other) = (home.device(), home.device())
        settle(device)
        let homeDisk = device.disk
        device.goOffline()
        device["parked"] = .integer(1)
        device.turn(to: "work", in: work, TestDisk())
        device.goOnline()
        settle(device)
        #expect(device["parked"] == nil)
        #expect(work.server["parked"] == nil)
        #expect(other["parked"] == nil)

        device.turn(to: "account", in: home, homeDisk)
        #expect(device["parked"] == .integer(1))
        settle(device)
        #expect(other["parked"] == .integer(1))
        #expect(work.server["parked"] == nil)
    }

    @Test func `takes an answer that was for the account it left as an answer to nothing`() {
        let device = home.device()
        settle(device)
        let homeDisk = device.disk
        device["x"] = .integer(1)
        device.holdsAnswers = true
        settle(device)
        device.turn(to: "work", in: work, TestDisk())
        settle(device)
        device["x"] = .integer(2)
        settle(device)
        device.receive(.pushFailed(1, LinkFailure(.unreachable, "the old connection broke")))
        #expect(device.engine.pushInFlight != nil)
        device.answer()
        #expect(device.engine.pushInFlight == nil)
        #expect(work.server["x"] == .integer(2))
        #expect(home.server["x"] == .integer(1))
        device.turn(to: "account", in: home, homeDisk)
        settle(device)
        #expect(device["x"] == .integer(1))
    }

    @Test func `fails the round trips that were asked for before`() {
        let device = home.device()
        device.goOffline()
        let request = device.requestSync()
        device.turn(to: "work", in: work, TestDisk())
        settle(device)
        #expect(device.finished[request]??.kind == .unauthorized)
    }

    @Test func `and only signs out keeps its values, is told once, and sends later what it writes`()
    {
        let (device, other) = (home.device(), home.device())
        device["x"] = .integer(1)
        settle(device)
        device.signOut()
        device.signOut()
        settle(device)
        #expect(device.takeNotices() == [Notice(.accountChange, [])])
        device["x"] = .integer(2)
        settle(device)
        #expect(other["x"] == .integer(1))
        device.signIn()
        settle(device)
        #expect(other["x"] == .integer(2))
        #expect(device.takeNotices() == [])
    }

    private func settle(_ device: SteppedDevice) {
        for _ in 0..<100 {
            home.settle()
            work.settle()
            if !device.step() { return }
        }
        Issue.record("the device did not come to rest")
    }
}
