// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// Bookmarks of the days of `NSMutableArray`.
class ClassicBookmarks: NSObject {
    let keyStore: NSUbiquitousKeyValueStore!
    var bookmarks: [[String: String]] = []
    private let kBookmarks = "classic.bookmarks"

    override init() {
        keyStore = NSUbiquitousKeyValueStore()
        super.init()
        if let saved = keyStore.array(forKey: kBookmarks) {
            bookmarks = saved as! [[String: String]]
        }
    }

    func add(_ name: String, address: String) {
        bookmarks.append(["name": name, "url": address])
        save()
    }

    func edit(_ index: Int, name: String) {
        bookmarks[index]["name"] = name
        save()
    }

    func delete(_ index: Int) {
        bookmarks.remove(at: index)
        save()
    }

    func save() {
        keyStore?.set(bookmarks, forKey: kBookmarks)
        keyStore?.synchronize()
    }

    func addThroughMutableArray(_ name: String) {
        let all = NSMutableArray(array: keyStore.array(forKey: kBookmarks) ?? [])
        let bookmark = NSMutableDictionary()
        bookmark["name"] = name
        bookmark["url"] = ""
        all.add(bookmark)
        keyStore.set(all, forKey: kBookmarks)
    }

    func names() -> [String] {
        guard let all = keyStore.object(forKey: kBookmarks) as? NSArray else { return [] }
        return all.map { ($0 as! NSDictionary)["name"] as! String }
    }
}
