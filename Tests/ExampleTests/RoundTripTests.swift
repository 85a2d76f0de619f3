// SPDX-License-Identifier: Apache-2.0

import ExampleScreen
import Foundation
import Testing
import Ubiquity
import UbiquityTesting

@testable import RoundTrip

@MainActor
struct RoundTripTests {
    private let cloud = TestCloud()
    private let a: AppDevice
    private let b: AppDevice

    init() {
        a = AppDevice("A", cloud, RoundTripPane.identifier)
        b = AppDevice("B", cloud, RoundTripPane.identifier)
    }

    private let plan = Note(title: "Plan", text: "Train at nine")
    private let other = Note(title: "Other plan", text: "Bus at ten")

    @Test func `a note goes to the other device, whole`() async {
        let here = Notepad(a.store, folder: a.folder)
        let there = Notepad(b.store, folder: b.folder)
        here.write(plan)
        #expect(await cloud.settle(until: { there.note == plan }))
        #expect(b.device.notifications.map(\.changedKeys) == [["note.text", "note.title"]])
    }

    @Test func `while offline each has its own, and after it the later one is on both`() async {
        let here = Notepad(a.store, folder: a.folder)
        let there = Notepad(b.store, folder: b.folder)
        await cloud.settle()
        a.device.goOffline()
        here.write(plan)
        await cloud.advance(by: .seconds(3_600))
        there.write(other)
        await cloud.settle()
        #expect((here.note, here.progress) == (plan, .waiting))
        #expect((there.note, there.progress) == (other, .onServer))

        a.device.goOnline()
        #expect(await cloud.settle(until: { here.note == other }))
        #expect(here.replaced == plan)

        here.takeBack()
        #expect(await cloud.settle(until: { there.note == plan }))
        #expect((here.replaced, there.replaced) == (nil, other))
    }

    @Test func `the copy is there when the app starts again, with or without a server`() async {
        let first: Notepad = Notepad(a.store, folder: a.folder)
        first.write(plan)
        await cloud.settle()
        a.device.signOut(wipes: true)
        await cloud.settle()
        #expect(a.store.string(forKey: "note.title") == nil)
        let second = Notepad(a.store, folder: a.folder)
        #expect((second.note, second.progress) == (plan, .inFile))
    }

    @Test func `a note that is too large changes nothing`() async {
        let here = Notepad(a.store, folder: a.folder)
        here.write(plan)
        here.write(Note(title: "Huge", text: String(repeating: "x", count: 1_100_000)))
        #expect(here.note == plan)
        #expect(here.trouble != nil)
        #expect(a.store.string(forKey: "note.title") == "Plan")
        here.write(other)
        #expect(here.trouble == nil)
    }

    @Test func `a damaged copy, half a note and foreign values do no harm`() async throws {
        try Data("{".utf8).write(to: URL(fileURLWithPath: a.folder + "/note.json"))
        b.store.set("Half", forKey: "note.title")
        b.store.set(Data([1]), forKey: "note.text")
        await cloud.settle()
        let here = Notepad(a.store, folder: a.folder)
        #expect((here.note, here.progress) == (Note(), .unwritten))
    }

    @Test func `the keys edit title and text, and Escape gives up`() {
        let pane = RoundTripPane(a.stage())
        func type(_ text: String) { for letter in text { pane.press(.character(letter)) } }
        type("ePlan")
        pane.press(.enter)
        type("Train")
        #expect(pane.isTyping)
        pane.press(.enter)
        #expect(pane.lines.prefix(2).map(\.text) == ["Plan", "Train"])
        type("ex")
        pane.press(.escape)
        #expect(!pane.isTyping)
        #expect(pane.lines.first?.text == "Plan")
    }
}
