// SPDX-License-Identifier: Apache-2.0

import Ubiquity

/// A reader's place in the magazine.
struct Place: Codable, Hashable, Sendable {
    var issue = 1
    var page = 1
}

extension UbiquityKeys {
    static let place = UbiquityKey("place", default: Place())
}

/// An edition of the magazine. Both share one store, because their programs have one identifier.
enum Edition: String {
    case lite, full

    static let (issues, pages) = (12, 24)

    /// The lite one has the first pages of each issue.
    var pages: Int { self == .full ? Self.pages : 4 }
}

/// A reader's place in a magazine, in both of its editions on all devices.
///
/// The lite edition may come to a place that it has not got. It says so and leaves the place as it is:
/// the full one goes on from there.
@MainActor
final class Reader {
    let edition: Edition
    private let store: UbiquitousKeyValueStore
    private var following: Task<Void, Never>?
    /// The place that all devices share, made to be one of the magazine.
    private(set) var place = Place()

    private static let turnsKey = "pagesTurned"

    init(_ store: UbiquitousKeyValueStore, _ edition: Edition) {
        (self.store, self.edition) = (store, edition)
        show(store[.place])
        let places = store.values(for: .place)
        following = Task { [weak self] in
            for await place in places { self?.show(place) }
        }
    }

    deinit { following?.cancel() }

    var hasPlace: Bool { place.page <= edition.pages }

    /// On all devices together: each adds, and no turn is lost.
    var pagesTurned: Int { Int(store.longLong(forKey: Self.turnsKey)) }

    /// One page on or back, within the issue.
    func turn(by pages: Int) {
        let page = place.page + pages
        guard (1...edition.pages).contains(page) else { return }
        go(to: Place(issue: place.issue, page: page))
        store.increment(forKey: Self.turnsKey)
    }

    /// The first page of another issue.
    func open(issue: Int) {
        guard (1...Edition.issues).contains(issue) else { return }
        go(to: Place(issue: issue, page: 1))
    }

    /// Issue and page are one value, so they never come apart.
    private func go(to place: Place) {
        store[.place] = place
        show(place)
    }

    private func show(_ stored: Place) {
        place = Place(
            issue: min(max(stored.issue, 1), Edition.issues),
            page: min(max(stored.page, 1), Edition.pages))
    }
}
