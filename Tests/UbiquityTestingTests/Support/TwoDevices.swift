// SPDX-License-Identifier: Apache-2.0

import Ubiquity
import UbiquityTesting

/// A phone and a laptop of one person with the same app, which have met.
struct TwoDevices {
    static let identifier = "TEAM.com.example.app"

    let cloud: TestCloud
    let phone: TestDevice
    let laptop: TestDevice
    /// The phone's.
    let a: UbiquitousKeyValueStore
    /// The laptop's.
    let b: UbiquitousKeyValueStore

    init(seed: UInt64 = 1) {
        cloud = TestCloud(seed: seed)
        phone = cloud.newDevice("phone")
        laptop = cloud.newDevice("laptop")
        a = phone.openStore(Self.identifier)
        b = laptop.openStore(Self.identifier)
        cloud.settle()
    }

    var onServer: [String: Any] { cloud.server.values(ofStore: Self.identifier) }
}

extension TestNotification {
    /// The reason and the keys, which are all that most tests need.
    var news: News { News(reason: reason, keys: changedKeys) }
}

struct News: Hashable {
    var reason: Int
    var keys: [String]
}
