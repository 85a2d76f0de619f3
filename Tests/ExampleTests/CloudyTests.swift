// SPDX-License-Identifier: Apache-2.0

import ExampleScreen
import Foundation
import Testing
import Ubiquity
import UbiquityTesting

@testable import Cloudy

@MainActor
struct CloudyTests {
    private let cloud = TestCloud()
    private let a: AppDevice
    private let b: AppDevice
    private let here: Bookmarks
    private let there: Bookmarks

    init() {
        a = AppDevice("A", cloud, CloudyPane.identifier)
        b = AppDevice("B", cloud, CloudyPane.identifier)
        (here, there) = (Bookmarks(a.store), Bookmarks(b.store))
    }

    private func titles(_ bookmarks: Bookmarks) -> [String] { bookmarks.all.map(\.bookmark.title) }

    @Test func `what two devices add at the same time is there on both`() async throws {
        b.device.goOffline()
        try here.add(title: "Swift", address: "https://swift.org")
        try there.add(title: "Debian", address: "https://debian.org")
        b.device.goOnline()
        await cloud.settle()
        #expect(titles(here) == ["Debian", "Swift"])
        #expect(titles(there) == titles(here))
    }

    @Test func `a deletion, an addition and a new title of the same moment all happen`()
        async throws
    {
        try here.add(title: "Swift", address: "https://swift.org")
        try here.add(title: "Debian", address: "https://debian.org")
        await cloud.settle()
        b.device.goOffline()
        try here.delete("https://debian.org")
        try there.rename("https://swift.org", to: "The Swift language")
        try there.add(title: "Ada", address: "https://example.com/ada")
        b.device.goOnline()
        await cloud.settle()
        #expect(titles(here) == ["Ada", "The Swift language"])
        #expect(titles(there) == titles(here))
    }

    @Test func `a new title for what another device deleted meanwhile does not bring it back`()
        async throws
    {
        try here.add(title: "Swift", address: "https://swift.org")
        await cloud.settle()
        try here.delete("https://swift.org")
        await cloud.settle()
        try there.rename("https://swift.org", to: "Again")
        #expect(titles(there).isEmpty)
    }

    @Test func `a bookmark that does not fit is refused, and the others stay`() async throws {
        try here.add(title: "Swift", address: "https://swift.org")
        let huge = String(repeating: "x", count: 1_100_000)
        #expect(throws: UbiquityError.self) {
            try here.add(title: huge, address: "https://example.com/huge")
        }
        await cloud.settle()
        #expect(titles(here) == ["Swift"])
        #expect(titles(there) == ["Swift"])
    }

    @Test func `what fits on each device and not on both is told, and kept`() async throws {
        let half = String(repeating: "x", count: 600_000)
        b.device.goOffline()
        try here.add(title: "A" + half, address: "https://example.com/a")
        try there.add(title: "B" + half, address: "https://example.com/b")
        await cloud.settle()
        b.device.goOnline()
        await cloud.settle()
        #expect(titles(here).map(\.first) == ["A"])
        #expect(titles(there) == titles(here))
        #expect(try b.store.refusedWrites().map(\.key) == ["bookmarks"])
    }

    @Test(arguments: [
        ("", "https://swift.org"), ("  ", "https://swift.org"), ("a", ""), ("a", "swift.org"),
        ("a", "file:///etc/passwd"), ("a", "https://"), ("a", "javascript:alert(1)"),
    ])
    func `an invalid bookmark is refused with a sentence`(title: String, address: String) {
        #expect(throws: Bookmarks.Refusal.self) { try here.add(title: title, address: address) }
        #expect(here.all.isEmpty)
    }

    @Test func `what another app wrote under the key does not end this one`() async throws {
        b.store.set(["https://swift.org"], forKey: "bookmarks")
        await cloud.settle()
        #expect(here.all.isEmpty)
    }

    @Test func `the keys add, edit, delete, and say what was refused`() throws {
        let pane = CloudyPane(a.stage())
        func type(_ keys: Key...) { for key in keys { pane.press(key) } }
        func type(_ text: String) { for letter in text { pane.press(.character(letter)) } }

        type("aSwift")
        type(.enter)
        type("swift.org")
        type(.enter)
        #expect(pane.lines.map(\.text).contains("  https://swift.org"))
        type("e!")
        type(.enter)
        #expect(pane.lines.first?.text == "Swift!")
        type("b")
        #expect(pane.lines.last.map { !$0.text.isEmpty } == true)
        #expect(pane.lines.count > 4)
        type("d")
        #expect(pane.lines.first?.text == "No bookmarks yet.")
        type("dee")
        #expect(!pane.isTyping)
    }
}
