// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

/// Each combination of absent, `a` and `b` for what was agreed on, the preferences and the store.
@Suite struct `The rule of a mirror` {
    private static let states: [String?] = [nil, "a", "b"]

    struct Case: Sendable, CustomStringConvertible {
        var baseline, local, remote: String?

        var description: String {
            "agreed \(baseline ?? "-"), local \(local ?? "-"), remote \(remote ?? "-")"
        }

        func step(_ mode: MirrorMode, merges: Bool = false) -> MirrorStep {
            MirrorRule.step(
                baseline: baseline, local: local, remote: remote, mode: mode, merges: merges)
        }
    }

    static let cases = states.flatMap { baseline in
        states.flatMap { local in
            states.map { Case(baseline: baseline, local: local, remote: $0) }
        }
    }

    @Test(arguments: cases)
    func `does nothing while the first download is under way`(_ now: Case) {
        #expect(now.step(.wait) == .rest)
        #expect(now.step(.wait, merges: true) == .rest)
    }

    @Test(arguments: cases, [MirrorMode.begin, .compare, .replace])
    func `only takes note where both have the same`(_ now: Case, _ mode: MirrorMode) {
        let step = now.step(mode)
        #expect((step == .rest || step == .rebase) == (now.local == now.remote))
        #expect((step == .rest) == (now.local == now.remote && now.baseline == now.local))
    }

    @Test(arguments: cases.filter { $0.local != $0.remote })
    func `takes whatever another account has, and tells it nothing`(_ now: Case) {
        #expect(now.step(.replace) == .take)
        #expect(now.step(.replace, merges: true) == .take)
    }

    @Test(arguments: cases.filter { $0.baseline != nil && $0.local != $0.remote })
    func `proposes what changed in the preferences, and takes what changed in the store only`(
        _ now: Case
    ) {
        #expect(now.step(.compare) == (now.local == now.baseline ? .take : .write))
        #expect(now.step(.compare, merges: true) == now.step(.compare))
    }

    @Test(arguments: cases.filter { $0.baseline == nil && $0.local != $0.remote })
    func `lets the store win where nothing was agreed on, and uploads what it does not have`(
        _ now: Case
    ) {
        #expect(now.step(.compare) == (now.remote == nil ? .write : .take))
        #expect(now.step(.begin) == now.step(.compare))
    }

    @Test(arguments: cases.filter { $0.local != $0.remote })
    func `forgets what was agreed on with another store, but no merging counts a value twice`(
        _ now: Case
    ) {
        let fresh = Case(baseline: nil, local: now.local, remote: now.remote)
        #expect(now.step(.begin) == fresh.step(.compare))
        let isKnown = now.local == now.baseline
        let merges = now.local != nil && now.remote != nil && !isKnown
        #expect(now.step(.begin, merges: true) == (merges ? .write : now.step(.begin)))
    }

    @Test(arguments: cases)
    func `proposes a change of what was agreed on, and all of a value that the store lost`(
        _ now: Case
    ) {
        let compared = MirrorRule.base(baseline: now.baseline, remote: now.remote, mode: .compare)
        #expect(compared == now.baseline)
        let begun = MirrorRule.base(baseline: now.baseline, remote: now.remote, mode: .begin)
        #expect(begun == (now.remote == nil ? nil : now.baseline))
    }
}
