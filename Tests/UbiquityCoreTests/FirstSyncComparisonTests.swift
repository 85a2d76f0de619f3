// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

@Suite struct `A first sync with values on both sides` {
    private let own = DeviceID(rawValue: 9)

    private func record(_ key: String, _ value: String?, at milliseconds: Int64) throws -> Record {
        Record(
            key: try Key(key), content: value.map { .value(.string($0)) } ?? .deleted,
            stamp: Stamp(
                HybridTimestamp(milliseconds: milliseconds, counter: 0), DeviceID(rawValue: 1)))
    }

    private func comparison() throws -> FirstSyncComparison {
        let here = try [
            record("older", "here", at: 100), record("newer", "here", at: 300),
            record("same", "same", at: 100), record("mine", "here", at: 100),
            record("gone here", nil, at: 300),
        ].map { StoredEntry(key: $0.key, confirmed: $0, pending: nil) }
        let there = try [
            record("older", "there", at: 200), record("newer", "there", at: 200),
            record("same", "same", at: 200), record("theirs", "there", at: 200),
            record("gone here", "there", at: 200),
        ]
        return FirstSyncComparison(here, there)
    }

    @Test func `tells what each has alone, and what differs`() throws {
        let comparison = try comparison()
        #expect(comparison.onlyHere.map(\.string) == ["mine"])
        #expect(Set(comparison.onlyThere.map(\.string)) == ["theirs", "gone here"])
        #expect(Set(comparison.different.map(\.string)) == ["older", "newer"])
    }

    @Test(arguments: [
        (FirstSyncChoice.server, []), (.device, ["newer", "older"]), (.newest, ["newer"]),
    ])
    func `writes what the person keeps of the device, later than what it replaces`(
        choice: FirstSyncChoice, keys: [String]
    ) throws {
        for now: Int64 in [150, 1_000] {
            let writes = try comparison().writes(keeping: choice, now: now, by: own)
                .flatMap(\.writes)
            #expect(writes.map(\.key.string).sorted() == keys)
            for write in writes {
                #expect(write.content == .value(.string("here")))
                #expect(write.stamp.device == own)
                #expect(write.stamp.timestamp.milliseconds >= max(now, 200))
                #expect(write.stamp.timestamp > HybridTimestamp(milliseconds: 200, counter: 0))
            }
        }
    }
}
