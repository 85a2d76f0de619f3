// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import DropInSupport
import Foundation
import Testing
import Ubiquity

struct SyncedTests {
    init() { TestHome.use() }

    @Test func `properties over the store keep their values`() {
        let profile = Profile()
        #expect(profile.level == 1 && profile.isNew && profile.birthday == nil)
        #expect(!profile.$level)
        profile.level = 13
        profile.name = "Ada"
        profile.ratio = 2
        profile.isNew = false
        profile.tags = ["a", "b"]
        profile.birthday = Date(timeIntervalSinceReferenceDate: 0.25)
        profile.player = Player(name: "Ada", scores: [3, 1], joined: .distantFuture)
        let next = Profile()
        #expect(next.$level && next.level == 13)
        #expect(next.name == "Ada")
        #expect(next.ratio == 2)
        #expect(!next.isNew)
        #expect(next.tags == ["a", "b"])
        #expect(next.birthday == Date(timeIntervalSinceReferenceDate: 0.25))
        #expect(next.player == Player(name: "Ada", scores: [3, 1], joined: .distantFuture))
        next.birthday = nil
        #expect(profile.birthday == nil)
    }
}

#endif
