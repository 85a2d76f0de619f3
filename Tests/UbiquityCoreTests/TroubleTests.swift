// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `A device in trouble` {
    let cloud = SteppedCloud()

    @Test func `goes on in memory while its disk is full, sends nothing, and catches up`() {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        a.disk.isFull = true
        a["x"] = .integer(1)
        while a.step() {}
        #expect(a["x"] == .integer(1))
        #expect(!a.engine.isSaved)
        #expect(a.engine.diskFailure != nil)
        #expect(cloud.server["x"] == nil)
        a.disk.isFull = false
        cloud.pass(milliseconds: 1_000)
        cloud.settle()
        #expect(a.engine.diskFailure == nil)
        #expect(b["x"] == .integer(1))
    }

    @Test func `is not woken for a push of what a full disk keeps from being sent`() {
        let a = cloud.device()
        cloud.settle()
        a.losesAnswers = true
        a["x"] = .integer(1)
        cloud.settle()
        a.disk.isFull = true
        a["x"] = .integer(2)
        cloud.pass(milliseconds: 60_000)
        cloud.settle()
        #expect(a.engine.nextWake ?? .max > a.reading.uptime)
        a.losesAnswers = false
        a.disk.isFull = false
        cloud.pass(milliseconds: 1_000)
        cloud.settle()
        #expect(cloud.server["x"] == .integer(2))
    }

    @Test func `is told at once that a round trip failed, and gets one when the server is back`() {
        let a = cloud.device()
        a.goOffline()
        let failed = a.requestSync()
        cloud.settle()
        #expect(a.finished[failed]??.kind == .unreachable)
        a.goOnline()
        let done = a.requestSync()
        cloud.settle()
        #expect(a.finished[done] == .some(nil))
    }

    @Test func `is told that a round trip failed when the server refused what it covered`() {
        let a = cloud.device()
        cloud.settle()
        cloud.setLimits { $0.keysMax = 1 }
        a["x"] = .integer(1)
        cloud.settle()
        a["y"] = .integer(2)
        let refused = a.requestSync()
        cloud.settle()
        #expect(a.finished[refused]??.kind == .refused)
        #expect(a.finished[refused]??.refusedKeys == [try! Key("y")])
        let done = a.requestSync()
        cloud.settle()
        #expect(a.finished[done] == .some(nil))
    }

    @Test func `is told so by the process that leads, and whoever asks next is not`() {
        let a = cloud.device()
        cloud.settle()
        cloud.setLimits { $0.keysMax = 1 }
        a["x"] = .integer(1)
        cloud.settle()
        let helper = a.helper()
        helper["y"] = .integer(2)
        let refused = helper.requestSync()
        while helper.step() || a.step() {}
        #expect(helper.finished[refused]??.kind == .refused)
        #expect(helper.finished[refused]??.refusedKeys == [try! Key("y")])
        let done = helper.requestSync()
        while helper.step() || a.step() {}
        #expect(helper.finished[done] == .some(nil))
    }

    @Test func `waits for what the app wrote meanwhile in place of a refused write`() {
        let a = cloud.device()
        cloud.settle()
        cloud.setLimits { $0.valueBytesMax = 10 }
        a["x"] = .string("far too long for that")
        while a.step() {}
        a.holdsAnswers = true
        a["x"] = .string("also too long for that")
        let request = a.requestSync()
        cloud.settle()
        a["x"] = .string("short")
        a.answer()
        cloud.settle()
        #expect(a.finished[request] == .some(nil))
        #expect(cloud.server["x"] == .string("short"))
    }

    @Test func `that is not signed in is told so, and stays usable`() {
        let local = SteppedDevice(
            number: 5, cloud: cloud, clockError: 0, policy: .serverWins, isSignedIn: false)
        let request = local.requestSync()
        while local.step() {}
        #expect(local.finished[request]??.kind == .unauthorized)
        local["x"] = .integer(1)
        while local.step() {}
        #expect(local["x"] == .integer(1))
        #expect(local.engine.isSaved)
    }

    @Test func `that is signed out tells the app once, keeps its values and its unsent writes`() {
        let a = cloud.device()
        a["x"] = .integer(1)
        cloud.settle()
        a.signOut()
        a["y"] = .integer(2)
        cloud.settle()
        #expect(a.takeNotices() == [Notice(.accountChange, [])])
        #expect(a["x"] == .integer(1))
        #expect(cloud.server["y"] == nil)
        a.signIn()
        cloud.settle()
        #expect(cloud.server["y"] == .integer(2))
    }

    @Test func `never takes one account's file to another account`() {
        let a = cloud.device()
        a["x"] = .integer(1)
        cloud.settle()
        a.signOut()
        a["secret"] = .integer(2)
        a.receive(.signedIn(account: "another", device: a.id))
        cloud.settle()
        #expect(cloud.server["secret"] == nil)
        #expect(!a.engine.isSignedIn)
    }

    @Test func `pushes no more often than its allowance, and then the final values`() {
        var server = SteppedServer(epoch: 1)
        server.allowance = Allowance(burst: 2, perSecond: 1)
        cloud.replaceServer(by: server)
        let a = cloud.device()
        for number in 0..<10 {
            a["x"] = .integer(Int64(number))
            cloud.settle()
        }
        #expect(cloud.server.pushes == 2)
        #expect(a.engine.status.pendingKeys.count == 1)
        #expect(a.engine.nextWake != nil)
        cloud.pass(milliseconds: 1_000)
        cloud.settle()
        #expect(cloud.server.pushes == 3)
        #expect(cloud.server["x"] == .integer(9))
    }

    @Test func `waits longer each time, at most a minute, and tries at once in a hurry`() {
        let a = cloud.device()
        a.goOffline()
        var waits: [Int64] = []
        for _ in 0..<12 {
            cloud.settle()
            guard let wake = a.engine.nextWake else {
                Issue.record("nothing to wait for")
                return
            }
            waits.append(wake - a.reading.uptime)
            cloud.pass(milliseconds: waits.last!)
        }
        #expect(waits[0] <= Backoff.firstMilliseconds)
        #expect(waits.allSatisfy { $0 <= Backoff.maxMilliseconds })
        #expect(waits.last! >= Backoff.maxMilliseconds / 2)
        cloud.settle()
        cloud.pass(milliseconds: 1_000)
        a.isOnline = true
        a.receive(.hurry)
        cloud.settle()
        #expect(a.engine.status.link.state == .connected)
    }

    @Test func `refuses on the spot what cannot fit, keeps the old value, and tells why`() throws {
        let a = cloud.device()
        a["x"] = .integer(1)
        cloud.settle()
        let tooLarge = PropertyListValue.data([UInt8](repeating: 0, count: 1_048_577))
        #expect(throws: LimitViolation.valueTooLarge(bytes: 1_048_577, max: 1_048_576)) {
            try a.write(["x": tooLarge])
        }
        #expect(throws: LimitViolation.keyTooLong(.utf8Bytes(64))) {
            try a.write([String(repeating: "k", count: 65): .integer(1)])
        }
        cloud.settle()
        #expect(a["x"] == .integer(1))
        #expect(a.takeNotices() == [Notice(.quotaViolation, [try Key("x")])])
    }
}
