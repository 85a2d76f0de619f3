// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// The content of a bookmark, which is stored under its address.
struct Bookmark: Codable, Hashable, Sendable {
    var title: String
    var added: Date
}

extension UbiquityKeys {
    /// By address: each is an entry of its own, so that devices that change different bookmarks do not
    /// get into each other's way, and a title changes without its bookmark becoming another one.
    static let bookmarks = UbiquityKey<[String: Bookmark]>("bookmarks", default: [:])
}

/// A person's bookmarks. What two devices do at the same time happens both.
@MainActor
final class Bookmarks {
    private let store: UbiquitousKeyValueStore

    init(_ store: UbiquitousKeyValueStore) {
        self.store = store
        store.setConflictPolicy(.unionOfDictionaries, for: .bookmarks)
    }

    /// Addresses and bookmarks, by title.
    var all: [(address: String, bookmark: Bookmark)] {
        store[.bookmarks].map { ($0.key, $0.value) }
            .sorted { ($0.bookmark.title, $0.address) < ($1.bookmark.title, $1.address) }
    }

    /// - Throws: ``Refusal`` for what is no bookmark; `UbiquityError` if it does not fit into the store.
    ///   Then nothing has changed.
    func add(title: String, address: String, at date: Date = Date()) throws {
        let title = title.trimmingCharacters(in: .whitespaces)
        let address = address.trimmingCharacters(in: .whitespaces)
        guard !title.isEmpty else { throw Refusal("a bookmark needs a title") }
        guard let url = URL(string: address), ["http", "https"].contains(url.scheme ?? ""),
            url.host?.isEmpty == false
        else {
            throw Refusal(
                "\"\(address)\" is not the address of a page, such as https://swift.org")
        }
        try store.update(.bookmarks) { $0[address] = Bookmark(title: title, added: date) }
    }

    /// - Throws: As ``add(title:address:at:)``. One that another device deleted meanwhile stays deleted.
    func rename(_ address: String, to title: String) throws {
        guard let bookmark = store[.bookmarks][address] else { return }
        try add(title: title, address: address, at: bookmark.added)
    }

    func delete(_ address: String) throws { try store.update(.bookmarks) { $0[address] = nil } }

    struct Refusal: Error, Hashable, CustomStringConvertible {
        let description: String

        init(_ description: String) { self.description = description }
    }
}
