// SPDX-License-Identifier: Apache-2.0

internal import Testing
internal import UbiquityTestWorker

/// The judge of the storm of processes finds what it is there to find.
@Suite struct StormVerdictTests {
    /// Both wrote "shared-1" as their number 1, the second long after; and 4 is a key of their own.
    private static let records = [
        record("w1", startingAt: 1), record("w2", startingAt: 1 + 2 * StormVerdict.simultaneous),
    ]
    private static let good = ["shared-1": "w2:1", "own-w1-4": "w1:4", "own-w2-4": "w2:4"]
        .merging(["shared-2": "w2:2", "shared-3": "w2:3"]) { $1 }

    private static func record(_ writer: String, startingAt time: UInt64) -> StormRecord {
        var record = StormRecord(writer: writer)
        record.add(.attempting(1...4, at: time))
        record.add(.acknowledged(through: 4))
        // Killed before it was acknowledged; 104 has the key of 4.
        record.add(.attempting(5...104, at: time))
        return record
    }

    private func complaints(with changes: [String: String?]) -> [String] {
        var values = Self.good
        for (key, text) in changes { values[key] = text }
        return StormVerdict(Self.records).complaints(about: values)
    }

    @Test func `what was acknowledged, or attempted later, is good`() {
        #expect(complaints(with: [:]).isEmpty)
        #expect(complaints(with: ["own-w1-4": "w1:104", "own-w1-5": "w1:5"]).isEmpty)
        #expect(complaints(with: ["pair-a": "w1:10", "pair-b": "w1:10"]).isEmpty)
    }

    @Test(
        arguments: [
            (["own-w1-4": nil], "own-w1-4 is gone"),
            (["own-w1-4": "w1:204"], "own-w1-4 has w1:204, which nobody wrote there"),
            (["own-w1-4": "w2:4"], "own-w1-4 has w2:4, which nobody wrote there"),
            (["own-w1-4": "w1:5"], "own-w1-4 has w1:5, which nobody wrote there"),
            (["shared-1": "w1:1"], "shared-1 has w1:1, but the acknowledged w2:1 is later"),
            (["pair-a": "w1:10"], #"the pair is torn: ["w1:10", "nothing"]"#),
        ] as [([String: String?], String)])
    func `an impossible state is reported`(_ changes: [String: String?], _ complaint: String) {
        #expect(complaints(with: changes) == [complaint])
    }

    @Test func `a write older than the acknowledged one is complained of`() {
        var record = Self.records[0]
        record.add(.acknowledged(through: 104))
        let verdict = StormVerdict([record])
        let complaints = verdict.complaints(
            aboutOwnKeysOf: "w1", in: ["own-w1-4": "w1:4", "pair-a": "w1:10", "pair-b": "w1:10"])
        #expect(complaints.contains("own-w1-4 has w1:4, but 104 was acknowledged"))
    }
}
