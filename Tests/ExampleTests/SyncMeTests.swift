// SPDX-License-Identifier: Apache-2.0

import ExampleScreen
import Foundation
import Testing
import Ubiquity
import UbiquityTesting

@testable import SyncMe

@MainActor
struct SyncMeTests {
    private let cloud = TestCloud()
    private let a: AppDevice
    private let b: AppDevice

    init() {
        a = AppDevice("A", cloud, SyncMePane.identifier)
        b = AppDevice("B", cloud, SyncMePane.identifier)
    }

    @Test func `the colour of one device is the other's too`() async throws {
        let here = try Background(a.store, a.preferences)
        let there = try Background(b.store, b.preferences)
        #expect(there.color == .blue)
        here.color = .violet
        #expect(await cloud.settle(until: { there.color == .violet }))
        #expect(b.defaults.string(forKey: "background") == "violet")
    }

    @Test func `of two that were chosen while one device was offline the later is on both`()
        async throws
    {
        let here = try Background(a.store, a.preferences)
        let there = try Background(b.store, b.preferences)
        await cloud.settle()
        b.device.goOffline()
        there.color = .rose
        #expect(await cloud.settle(until: { !b.store.status.pendingKeys.isEmpty }))
        await cloud.advance(by: .seconds(60))
        here.color = .slate
        #expect(await cloud.settle(until: { a.store.string(forKey: "background") == "slate" }))
        b.device.goOnline()
        #expect(await cloud.settle(until: { there.color == .slate }))
        #expect(here.color == .slate)
    }

    @Test func `a fresh install changes no colour`() async throws {
        let here = try Background(a.store, a.preferences)
        here.color = .green
        #expect(await cloud.settle(until: { a.store.string(forKey: "background") == "green" }))
        await cloud.settle()
        let there = try Background(b.store, b.preferences)
        #expect(await cloud.settle(until: { there.color == .green }))
        #expect(here.color == .green)
    }

    @Test(arguments: ["puce", "", "\u{1B}[2J"])
    func `an unknown colour is blue`(name: String) async throws {
        let there = try Background(b.store, b.preferences)
        a.store.set(name, forKey: "background")
        await cloud.settle()
        #expect(
            await cloud.settle(until: { b.defaults.string(forKey: "background") == name }))
        #expect(there.color == .blue)
    }

    @Test func `the keys choose, and the whole pane has the colour`() throws {
        let pane = try SyncMePane(a.stage())
        let blue = pane.ground
        for key in "390" { pane.press(.character(key)) }
        #expect(pane.lines.first?.text == "The background is violet.")
        #expect(pane.ground != blue)
        pane.press(.character(" "))
        #expect(pane.lines.first?.text == "The background is orange.")
    }
}
