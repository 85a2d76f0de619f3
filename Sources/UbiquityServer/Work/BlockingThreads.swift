// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Threads for jobs that block or need a deep stack: disk access, and nested values. Jobs begin in
/// order of arrival.
///
/// State: `jobs` and `isClosed`, guarded by `condition`, on which idle threads wait. Unchecked
/// because the compiler does not know this guard.
final class BlockingThreads: @unchecked Sendable {
    typealias Job = @Sendable () -> Void

    private let condition = NSCondition()
    private var jobs: [Job] = []
    private var next = 0
    private var isClosed = false
    private let waitingMax: Int

    /// A value may nest to a depth of 512, and each level takes several calls to read or write: up
    /// to 4 MB in a debug build. A thread only costs the memory that it touches.
    private static let stackBytes = 16 << 20

    init(name: String, count: Int, waitingMax: Int) {
        self.waitingMax = waitingMax
        for number in 1...count {
            let thread = Thread { [self] in work() }
            thread.name = "\(name)-\(number)"
            thread.stackSize = Self.stackBytes
            thread.start()
        }
    }

    /// - Returns: False if the queue is full or closed; the job will not run then.
    func submit(_ job: @escaping Job) -> Bool {
        condition.lock()
        defer { condition.unlock() }
        guard !isClosed, jobs.count - next < waitingMax else { return false }
        jobs.append(job)
        condition.signal()
        return true
    }

    /// - Throws: ``Busy`` if the queue is full, or the body's error.
    func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            let isAccepted = submit { continuation.resume(with: Result(catching: body)) }
            if !isAccepted { continuation.resume(throwing: Busy()) }
        }
    }

    /// Ends the threads once the waiting jobs are done.
    func close() {
        condition.lock()
        isClosed = true
        condition.broadcast()
        condition.unlock()
    }

    private func work() {
        while let job = take() { job() }
    }

    private func take() -> Job? {
        condition.lock()
        defer { condition.unlock() }
        while next == jobs.count {
            guard !isClosed else { return nil }
            condition.wait()
        }
        let job = jobs[next]
        next += 1
        if next == jobs.count {
            jobs.removeAll(keepingCapacity: jobs.count < 1_024)
            next = 0
        }
        return job
    }
}

/// The queue is full.
struct Busy: Error, Hashable, Sendable {}
