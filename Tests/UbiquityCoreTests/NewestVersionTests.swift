// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

/// Tests what `blame` says about a key if only the newest part of its store's history is known.
struct NewestVersionTests {
    private let key = try! Key("k")

    private func stamp(_ time: Int64) -> Stamp {
        Stamp(HybridTimestamp(milliseconds: time), DeviceID(rawValue: 7))
    }

    private func version(
        _ key: Key, _ value: Int64, at time: Int64, _ outcome: RecordVersion.Outcome = .current
    ) -> RecordVersion {
        RecordVersion(
            record: Record(key: key, content: .value(.integer(value)), stamp: stamp(time)),
            came: .init(revision: time, milliseconds: time), outcome: outcome)
    }

    private var local: KeyVersion {
        KeyVersion(key: key, value: .integer(5), stamp: stamp(3), outcome: .current)
    }

    @Test func `is the one that the history has, with the value before`() throws {
        let records = [
            version(key, 5, at: 3),
            version(key, 4, at: 2, .replaced(.init(revision: 3, milliseconds: 3), by: stamp(3))),
        ]
        for isWhole in [true, false] {
            let newest = try #require(
                NewestVersion(of: key, from: records, isWhole: isWhole, local: [local]))
            #expect(newest.now.value == .integer(5) && newest.now.came?.revision == 3)
            #expect(newest.before?.value == .integer(4))
        }
    }

    @Test func `of a key that was written before the part that is known is this device's`() throws {
        let newest = try #require(
            NewestVersion(of: key, from: [], isWhole: false, local: [local]))
        #expect(newest.now == local)
        #expect(newest.before == nil)
    }

    @Test func `of a counter is not made of some of its parts`() throws {
        let part = version(key.part(PartID("c1")!), 1, at: 3)
        let newest = try #require(
            NewestVersion(of: key, from: [part], isWhole: false, local: [local]))
        #expect(newest.now.value == .integer(5))
        #expect(newest.before == nil)
    }

    @Test func `begins with what waits to be sent`() throws {
        let waiting = KeyVersion(key: key, value: .integer(6), stamp: stamp(9), outcome: .waiting)
        let newest = try #require(
            NewestVersion(of: key, from: [], isWhole: false, local: [waiting, local]))
        #expect(newest.now == waiting && newest.before == local)
    }
}
