// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import DropInSupport
import Foundation
import Testing
import Ubiquity

/// On the default store, each test with keys of its own.
struct BookmarkListTests {
    private let list: BookmarkList
    private let key = "bookmarks." + UUID().uuidString
    private let store: NSUbiquitousKeyValueStore

    init() {
        TestHome.use()
        store = .default
        list = BookmarkList(key: key)
    }

    @Test func `bookmarks are appended, edited and deleted`() {
        #expect(list.entries.isEmpty)
        list.append(title: "First", visits: 1)
        list.append(title: "Second", visits: 2, isStarred: true)
        list.visit(at: 1)
        list.visit(at: 5)
        #expect(list.titles == ["First", "Second"])
        #expect(list.entries[1]["visits"] as? Int == 3)
        list.delete(at: 0)
        #expect(list.titles == ["Second"])
        list.delete(at: 0)
        #expect(list.entriesOfObject == nil)
        #expect(store.dictionaryRepresentation[key] == nil)
    }

    @Test func `everything in a bookmark comes back as it was`() throws {
        let before = Date()
        list.append(title: "One", visits: 7, isStarred: true)
        let bookmark = try #require(list.entriesOfObject?.first)
        #expect(bookmark["title"] as? String == "One")
        #expect(bookmark["visits"] as? Int == 7)
        #expect(bookmark["visits"] as? Int64 == 7)
        #expect(bookmark["visits"] as? Double == 7)
        #expect(bookmark["visits"] as? NSNumber == 7)
        #expect(bookmark["starred"] as? Bool == true)
        #expect(bookmark["tags"] as? [String] == ["new", "one"])
        let added = try #require(bookmark["added"] as? Date)
        #expect((before...Date()).contains(added))
    }

    @Test func `bookmarks of text are read as such, and mixed ones are not`() {
        list.replace(with: [["title": "One", "url": "https://example.org"]])
        #expect(list.texts == [["title": "One", "url": "https://example.org"]])
        #expect(store.array(forKey: key) as? [[String: String]] == list.texts)
        list.append(title: "Two", visits: 0)
        #expect(list.texts == nil)
        #expect(list.titles == ["One", "Two"])
    }

    @Test func `two lists of one key share their bookmarks`() {
        BookmarkList(store: NSUbiquitousKeyValueStore(), key: key).append(title: "One", visits: 0)
        #expect(list.titles == ["One"])
    }
}

#endif
