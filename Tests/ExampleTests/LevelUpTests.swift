// SPDX-License-Identifier: Apache-2.0

import ExampleScreen
import Testing
import Ubiquity
import UbiquityTesting

@testable import LevelUp

@MainActor
struct LevelUpTests {
    private let cloud = TestCloud()
    private let a: AppDevice
    private let b: AppDevice

    init() {
        a = AppDevice("A", cloud, LevelUpPane.identifier)
        b = AppDevice("B", cloud, LevelUpPane.identifier)
    }

    @Test func `with the guide's solution a lower level comes, and the app corrects it`() async {
        let (here, there) = (
            GuideGame(a.store, a.defaults), GuideGame(b.store, b.defaults)
        )
        await cloud.settle()
        b.device.goOffline()
        here.finish(level: 13)
        await cloud.advance(by: .seconds(60))
        there.finish(level: 1)
        b.device.goOnline()

        #expect(await cloud.settle(until: { there.level == 13 }))
        #expect(here.corrections == 1)
        #expect((here.level, there.levelInStore) == (13, 13))
        #expect(cloud.server.values(ofStore: LevelUpPane.identifier)["level"] as? Int == 13)
    }

    @Test func `with the guide's solution the lower level stays if no app that knows better runs`()
        async
    {
        var here: GuideGame? = GuideGame(a.store, a.defaults)
        let there = GuideGame(b.store, b.defaults)
        await cloud.settle()
        b.device.goOffline()
        here?.finish(level: 13)
        await cloud.advance(by: .seconds(60))
        here = nil
        there.finish(level: 1)
        b.device.goOnline()
        await cloud.settle()
        #expect(a.store.longLong(forKey: "level") == 1)

        // The app's next start.
        here = GuideGame(a.store, a.defaults)
        #expect(await cloud.settle(until: { there.level == 13 }))
        #expect(here?.corrections == 1)
    }

    @Test func `with the policy the higher level wins, and no app does anything for it`()
        async throws
    {
        let here = try PolicyGame(a.store, a.preferences)
        let there = try PolicyGame(b.store, b.preferences)
        await cloud.settle()
        b.device.goOffline()
        here.finish(level: 13)
        #expect(await cloud.settle(until: { here.levelInStore == 13 }))
        await cloud.advance(by: .seconds(60))
        there.finish(level: 1)
        #expect(await cloud.settle(until: { there.levelInStore == 1 }))
        b.device.goOnline()

        #expect(await cloud.settle(until: { there.level == 13 && there.levelInStore == 13 }))
        #expect((here.level, here.levelInStore) == (13, 13))
        let newcomer = cloud.newDevice("C").openStore(LevelUpPane.identifier)
        await cloud.settle()
        #expect(newcomer.longLong(forKey: PolicyGame.key) == 13)
    }

    @Test func `a value that is not a level does not end the game`() async {
        let game = GuideGame(a.store, a.defaults)
        b.store.set("thirteen", forKey: GuideGame.key)
        await cloud.settle()
        #expect((game.level, game.levelInStore) == (0, 0))
        game.finish(level: 2)
        #expect(game.levelInStore == 2)
    }

    @Test func `the keys finish levels, and change the way`() throws {
        let pane = try LevelUpPane(a.stage())
        for key in "  1" { pane.press(.character(key)) }
        #expect(pane.lines.first?.text == "Level 2")
        pane.press(.character("9"))
        #expect(pane.lines.first?.text == "Level 13")
        pane.press(.character("g"))
        #expect(pane.lines.first?.text == "Level 0")
    }
}
