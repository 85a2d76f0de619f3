// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// Bookmarks as an array of dictionaries: every change reads the whole, changes a copy and writes
/// it back.
struct BookmarkList {
    private let store: NSUbiquitousKeyValueStore
    private let key: String

    init(store: NSUbiquitousKeyValueStore = .default, key: String = "bookmarks") {
        self.store = store
        self.key = key
    }

    /// Of mixed values: a title, a count, a star, a date.
    var entries: [[String: Any]] { store.array(forKey: key) as? [[String: Any]] ?? [] }

    /// As the other half of the apps reads it.
    var entriesOfObject: [[String: Any]]? { store.object(forKey: key) as? [[String: Any]] }

    /// Only if all is text.
    var texts: [[String: String]]? { store.array(forKey: key) as? [[String: String]] }

    var titles: [String] { entries.compactMap { $0["title"] as? String } }

    func append(title: String, visits: Int, isStarred: Bool = false) {
        var entries = self.entries
        entries.append([
            "title": title, "visits": visits, "starred": isStarred, "added": Date(),
            "tags": ["new", title.lowercased()],
        ])
        store.set(entries, forKey: key)
        store.synchronize()
    }

    func visit(at index: Int) {
        guard var bookmark = entries[safe: index] else { return }
        bookmark["visits"] = (bookmark["visits"] as? Int ?? 0) + 1
        var entries = self.entries
        entries[index] = bookmark
        store.set(entries, forKey: key)
    }

    func delete(at index: Int) {
        var entries = self.entries
        entries.remove(at: index)
        if entries.isEmpty {
            store.removeObject(forKey: key)
        } else {
            store.set(entries, forKey: key)
        }
    }

    func replace(with texts: [[String: String]]) { store.set(texts, forKey: key) }
}

extension Array {
    fileprivate subscript(safe index: Int) -> Element? {
        indices.contains(index) ? self[index] : nil
    }
}
