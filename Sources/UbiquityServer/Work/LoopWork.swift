// SPDX-License-Identifier: Apache-2.0

internal import NIOCore

/// Jobs for event loops. Each loop is woken once for all of its jobs, which run in order.
struct LoopWork {
    private var loops: [(loop: any EventLoop, jobs: [@Sendable () -> Void])] = []

    mutating func add(on loop: any EventLoop, _ job: @escaping @Sendable () -> Void) {
        guard let index = loops.firstIndex(where: { $0.loop === loop }) else {
            loops.append((loop, [job]))
            return
        }
        loops[index].jobs.append(job)
    }

    /// Adds the jobs of other work after those that are there.
    mutating func add(_ work: LoopWork) {
        for (loop, jobs) in work.loops { for job in jobs { add(on: loop, job) } }
    }

    /// Hands the jobs over.
    func submit() {
        for (loop, jobs) in loops { loop.execute { for job in jobs { job() } } }
    }
}
