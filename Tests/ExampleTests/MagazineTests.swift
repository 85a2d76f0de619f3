// SPDX-License-Identifier: Apache-2.0

import ExampleScreen
import Testing
import Ubiquity
import UbiquityTesting

@testable import Magazine

@MainActor
struct MagazineTests {
    private let cloud = TestCloud()
    private let a: AppDevice
    private let b: AppDevice

    init() {
        a = AppDevice("A", cloud, MagazinePane.identifier)
        b = AppDevice("B", number: 1, cloud, MagazinePane.identifier)
    }

    @Test func `the full edition goes on where the lite one was left`() async {
        let lite = Reader(a.store, .lite)
        let full = Reader(b.store, .full)
        lite.open(issue: 3)
        lite.turn(by: 1)
        #expect(await cloud.settle(until: { full.place == Place(issue: 3, page: 2) }))
    }

    @Test func `the lite edition does not change a place that it does not have`() async {
        let lite = Reader(a.store, .lite)
        let full = Reader(b.store, .full)
        for _ in 0..<6 { full.turn(by: 1) }
        #expect(await cloud.settle(until: { lite.place.page == 7 }))
        #expect(!lite.hasPlace)
        lite.turn(by: 1)
        lite.turn(by: -1)
        await cloud.settle()
        #expect(full.place == Place(issue: 1, page: 7))
    }

    @Test func `no page that was turned offline is lost from the count`() async {
        let lite = Reader(a.store, .lite)
        let full = Reader(b.store, .full)
        await cloud.settle()
        a.device.goOffline()
        lite.turn(by: 1)
        lite.turn(by: 1)
        full.turn(by: 1)
        a.device.goOnline()
        await cloud.settle()
        #expect((lite.pagesTurned, full.pagesTurned) == (3, 3))
    }

    @Test func `both programs may run on one device`() async {
        let lite = Reader(a.store, .lite)
        let store = a.device.newProcess("full").openStore(MagazinePane.identifier)
        let full = Reader(store, .full)
        lite.turn(by: 1)
        #expect(await cloud.settle(until: { full.place.page == 2 }))
    }

    @Test(arguments: [
        ["issue": -4, "page": 1_000_000], ["issue": Int.max, "page": Int.min],
    ])
    func `a place that the magazine does not have becomes one that it has`(stored: [String: Int])
        async
    {
        let reader = Reader(a.store, .full)
        b.store.set(stored, forKey: "place")
        let isSo = await cloud.settle(until: { reader.place != Place() })
        #expect(isSo)
        #expect((1...Edition.issues).contains(reader.place.issue))
        #expect((1...Edition.pages).contains(reader.place.page))
        reader.turn(by: 1)
    }

    @Test func `an unknown place is the beginning`() async {
        b.store.set("page 3", forKey: "place")
        await cloud.settle()
        #expect(Reader(a.store, .full).place == Place())
    }

    @Test func `there are no more pages, and no more issues`() {
        let reader = Reader(a.store, .lite)
        reader.turn(by: -1)
        reader.open(issue: 0)
        reader.open(issue: Edition.issues + 1)
        #expect(reader.place == Place())
        #expect(reader.pagesTurned == 0)
    }

    @Test func `an unknown edition is refused with a sentence`() {
        #expect(throws: MagazinePane.UnknownEdition.self) {
            try MagazinePane(a.stage(["--edition": "gold"]))
        }
    }

    @Test func `the arrows turn pages and change issues`() throws {
        let pane = try MagazinePane(b.stage())
        for key in [Key.up, .right, .right, .left] { pane.press(key) }
        let text = pane.lines.map(\.text)
        #expect(text[0] == "The full edition")
        #expect(text[2...3] == ["Issue 2", "Page 2 of 24"])
    }
}
