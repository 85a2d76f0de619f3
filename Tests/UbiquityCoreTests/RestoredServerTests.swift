// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `A server restored from an older copy` {
    let cloud = SteppedCloud()

    @Test func `heals from its devices, deletions included`() {
        let (a, b) = (cloud.device(), cloud.device())
        a["kept"] = .integer(1)
        a["changed"] = .integer(1)
        a["deleted"] = .integer(1)
        cloud.settle()
        let copy = cloud.server
        a["changed"] = .integer(2)
        a["deleted"] = nil
        b["new"] = .integer(2)
        cloud.settle()
        cloud.replaceServer(by: copy)
        cloud.restartServer()
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
        cloud.settle()
        let c = cloud.device()
        cloud.settle()
        for device in [a, b, c] {
            #expect(device["kept"] == .integer(1))
            #expect(device["changed"] == .integer(2))
            #expect(device["deleted"] == nil)
            #expect(device["new"] == .integer(2))
        }
    }

    @Test func `is noticed also after it has counted on past the device's cursor`() {
        let (a, b) = (cloud.device(), cloud.device())
        a["x"] = .integer(1)
        cloud.settle()
        let copy = cloud.server
        a["lost"] = .integer(1)
        cloud.settle()
        a.goOffline()
        b.goOffline()
        cloud.replaceServer(by: copy)
        cloud.restartServer()
        let c = cloud.device()
        for number in 0..<5 {
            c["c\(number)"] = .integer(1)
            cloud.settle()
        }
        a.goOnline()
        cloud.settle()
        #expect(a["c0"] == .integer(1))
        #expect(c["lost"] == .integer(1))
    }

    @Test func `gets back what it was sent before, though its answer comes after`() {
        let a = cloud.device()
        cloud.settle()
        let copy = cloud.server
        a.holdsAnswers = true
        a["x"] = .integer(1)
        cloud.settle()
        #expect(cloud.server["x"] == .integer(1))
        cloud.replaceServer(by: copy)
        cloud.restartServer()
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
        cloud.settle()
        a.answer()
        cloud.settle()
        #expect(cloud.server["x"] == .integer(1))
    }

    @Test func `gets back what it was sent before, though its stream never told of it`() {
        let a = cloud.device()
        cloud.settle()
        let copy = cloud.server
        (a.holdsAnswers, a.holdsStream) = (true, true)
        a["x"] = .integer(1)
        cloud.settle()
        #expect(cloud.server["x"] == .integer(1))
        cloud.replaceServer(by: copy)
        cloud.restartServer()
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
        cloud.settle()
        a.holdsStream = false
        a.answer()
        cloud.settle()
        #expect(cloud.server["x"] == .integer(1))
        #expect(a.engine.ownRecords.isEmpty)
    }

    @Test(arguments: [false, true])
    func `gets back what it was sent before, where a live stream goes on at it`(isLate: Bool) {
        let a = cloud.device()
        cloud.settle()
        let copy = cloud.server
        (a.holdsAnswers, a.holdsStream) = (isLate, true)
        a["x"] = .integer(1)
        cloud.settle()
        #expect(cloud.server["x"] == .integer(1))
        cloud.replaceServer(by: copy, cuts: false)
        cloud.restartServer(cuts: false)
        a.holdsStream = false
        a.moveStream()
        cloud.settle()
        a.answer()
        cloud.settle()
        #expect(cloud.server["x"] == .integer(1))
        #expect(a.engine.ownRecords.isEmpty)
        #expect(a.engine.counts.streams == 2)
    }

    @Test func `does not bring back what was deleted so long ago that it is forgotten`() {
        let (a, b) = (cloud.device(), cloud.device())
        a["x"] = .integer(1)
        a["y"] = .integer(1)
        cloud.settle()
        b.goOffline()
        a["x"] = nil
        cloud.settle()
        var server = cloud.server
        server.compactTombstones()
        cloud.replaceServer(by: server)
        b.goOnline()
        cloud.settle()
        #expect(b["x"] == nil)
        #expect(b["y"] == .integer(1))
        #expect(cloud.server["x"] == nil)
    }

    @Test func `merely restarted, takes no store again and misses nothing`() {
        let (a, b) = (cloud.device(), cloud.device())
        a["x"] = .integer(1)
        cloud.settle()
        cloud.restartServer()
        a["x"] = .integer(2)
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
        cloud.settle()
        #expect(b["x"] == .integer(2))
    }
}
