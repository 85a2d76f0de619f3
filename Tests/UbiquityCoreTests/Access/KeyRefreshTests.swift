// SPDX-License-Identifier: Apache-2.0

internal import Testing
internal import UbiquityCore

struct KeyRefreshTests {
    private func loaded(at time: Int64) -> KeyRefresh {
        var refresh = KeyRefresh()
        refresh.willAsk(now: time)
        refresh.hasLoaded(asked: time)
        return refresh
    }

    @Test func `keys that were never loaded are requested, and none is valid`() {
        #expect(KeyRefresh().shouldAsk(knowsKey: false, now: 0))
        #expect(!KeyRefresh().areGood(now: 0))
    }

    @Test func `while it is asked, and for five seconds after a failure, nobody asks again`() {
        var refresh = KeyRefresh()
        refresh.willAsk(now: 100)
        #expect(!refresh.shouldAsk(knowsKey: false, now: 5_099))
        #expect(refresh.shouldAsk(knowsKey: false, now: 5_100))
    }

    @Test func `an unknown key makes it ask once a minute, a known one once an hour`() {
        let refresh = loaded(at: 0)
        #expect(!refresh.shouldAsk(knowsKey: false, now: 59_999))
        #expect(refresh.shouldAsk(knowsKey: false, now: 60_000))
        #expect(!refresh.shouldAsk(knowsKey: true, now: 3_599_999))
        #expect(refresh.shouldAsk(knowsKey: true, now: 3_600_000))
    }

    @Test func `keys are valid for a day after they were last loaded, whatever fails meanwhile`() {
        var refresh = loaded(at: 0)
        refresh.willAsk(now: 3_600_000)
        #expect(!refresh.shouldAsk(knowsKey: true, now: 3_604_999))
        #expect(refresh.shouldAsk(knowsKey: true, now: 3_605_000))
        #expect(refresh.areGood(now: 86_399_999))
        #expect(!refresh.areGood(now: 86_400_000))
    }
}
