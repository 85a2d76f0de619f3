// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `What a device has of a store` {
    private let laptop = DeviceID(rawValue: 1)
    private let phone = DeviceID(rawValue: 2)
    private let tablet = DeviceID(rawValue: 3)

    private func rule(compacted: Int64 = 0) -> DeliveryRule {
        DeliveryRule(
            [
                .init(revision: 7, author: phone), .init(revision: 3, author: laptop),
                .init(revision: 5, author: phone),
            ], in: Lineage(revision: 9, compactedRevision: compacted))
    }

    @Test func `is what it said to have saved`() {
        #expect(rule().delivery(to: tablet, passed: 7).isCurrent)
        let late = rule().delivery(to: tablet, passed: 4)
        #expect(late == Delivery(isCurrent: false, behind: 2, hasStore: true))
    }

    @Test func `and what it wrote itself`() {
        #expect(rule().delivery(to: phone, passed: 3).isCurrent)
        let phone = rule().delivery(to: phone, passed: nil)
        #expect(phone == Delivery(isCurrent: false, behind: 1, hasStore: true))
    }

    @Test func `is nothing where it never had it`() {
        #expect(rule().delivery(to: tablet, passed: nil) == Delivery())
    }

    @Test func `may not be all where deletions since are no longer known`() {
        #expect(!rule(compacted: 8).delivery(to: tablet, passed: 7).isCurrent)
        #expect(rule(compacted: 7).delivery(to: tablet, passed: 7).isCurrent)
    }
}
