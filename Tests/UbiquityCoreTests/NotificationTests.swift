// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `An app is told` {
    private func key(_ name: String) throws -> Key { try Key(name) }

    @Test func `one notice at a time, and of what came meanwhile together by its reason`() throws {
        var queue = NoticeQueue(now: 0)
        queue.post(Notice(.serverChange, [try key("a")]))
        #expect(queue.next(at: 0) == Notice(.serverChange, [try key("a")]))
        queue.post(Notice(.serverChange, [try key("b")]))
        queue.post(Notice(.accountChange, []))
        queue.post(Notice(.serverChange, [try key("c")]))
        #expect(queue.next(at: 0) == nil)
        #expect(!queue.isEmpty)
        queue.posted()
        #expect(queue.next(at: 0) == Notice(.serverChange, [try key("b"), try key("c")]))
        queue.posted()
        #expect(queue.next(at: 0) == Notice(.accountChange, []))
        queue.posted()
        #expect(queue.next(at: 0) == nil)
        #expect(queue.isEmpty)
        #expect(queue.wake == nil)
    }

    @Test func `of the first refused write at once, and of the rest of its loop together`() throws {
        var queue = NoticeQueue(now: 0)
        let keys = try (0..<400).map { try key("\($0)") }
        queue.postRefused([keys[0]])
        #expect(queue.next(at: 0)?.keys == [keys[0]])
        queue.posted()
        for refused in keys { queue.postRefused([refused]) }
        #expect(queue.next(at: 1) == nil)
        #expect(queue.wake == NoticeQueue.refusalGapMilliseconds)
        #expect(queue.next(at: NoticeQueue.refusalGapMilliseconds)?.keys == Set(keys))
    }

    @Test(arguments: [Int64(1), 40, 700])
    func `ever more slowly of refused writes that come without end`(answer: Int64) throws {
        var queue = NoticeQueue(now: 0)
        let (a, b) = (try key("a"), try key("b"))
        var (now, notices): (Int64, Int) = (0, 0)
        queue.postRefused([a])
        while now < 600_000 {
            if queue.next(at: now) != nil {
                notices += 1
                now += answer
                queue.postRefused([a])
                queue.postRefused([b])
                queue.posted()
            } else {
                // No driver needs to ask before the time that it is told.
                let wake = try #require(queue.wake)
                #expect(wake > now)
                now = max(now + 1, wake)
            }
        }
        #expect((100...130).contains(notices))
    }

    @Test func `of other changes without delay, while refused writes wait for their time`() throws {
        var queue = NoticeQueue(now: 0)
        for now in 0..<Int64(1_000) {
            queue.postRefused([try key("a")])
            while queue.next(at: now) != nil { queue.posted() }
        }
        queue.postRefused([try key("a")])
        queue.post(Notice(.serverChange, [try key("b")]))
        #expect(queue.next(at: 1_000) == Notice(.serverChange, [try key("b")]))
    }

    @Test func `of a bounded number of refused keys, however many an app invents`() throws {
        var queue = NoticeQueue(now: 0)
        queue.postRefused([try key("first")])
        _ = queue.next(at: 0)
        for number in 0..<(NoticeQueue.refusedKeysMax + 100) {
            queue.postRefused([try key("\(number)")])
        }
        queue.postRefused(Set((0..<5_000).map { try! Key("more\($0)") }))
        // What the server refused has another value now, and is told.
        queue.post(Notice(.quotaViolation, [try key("withdrawn")]))
        queue.posted()
        let notice = queue.next(at: 60_000)
        let keys = try #require(notice).keys
        #expect(keys.count == NoticeQueue.refusedKeysMax + 1)
        #expect(keys.contains(try key("withdrawn")))
    }

    /// The app that rewrites all its keys in its handler, of which the store takes a part only.
    @Test func `of refused writes a few times, when its handler repeats them for half a minute`()
        throws
    {
        let cloud = SteppedCloud()
        let a = cloud.device()
        cloud.settle()
        let tooMuch = PropertyListValue.data(Array(repeating: 0, count: (1 << 20) + 1))
        var posted = 0
        for _ in 0..<30_000 {
            if posted == 0 || !a.takeNotices().isEmpty {
                posted += 1
                for number in 0..<50 {
                    #expect(throws: LimitViolation.self) { try a.write(["k\(number)": tooMuch]) }
                }
            }
            while a.step() {}
            cloud.pass(milliseconds: 1)
        }
        #expect((5...20).contains(posted))
    }

    @Test func `of trouble that repeats itself once a second, with the number of the rest`() {
        var rate = ReportRate(now: 0)
        let admitted = (0..<10_000).compactMap { _ in rate.admit(now: 0) }
        #expect(admitted == Array(repeating: 0, count: ReportRate.allowance.burst))
        #expect(rate.admit(now: 1_000) == 10_000 - ReportRate.allowance.burst)
        #expect(rate.admit(now: 1_000) == nil)
        #expect(rate.admit(now: 2_000) == 1)
    }
}
