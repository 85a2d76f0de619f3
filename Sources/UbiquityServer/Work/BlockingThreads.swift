// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// Threads for jobs that block or need a deep stack: disk access, and nested values. The accounts
/// and the server's own work take turns. The jobs of each begin in order of arrival.
///
/// State: `jobs` and `isClosed`, guarded by `condition`, on which idle threads wait. Unchecked
/// because the compiler does not know this guard.
final class BlockingThreads: @unchecked Sendable {
    /// Called again in its account's next turn until it returns true.
    private typealias Job = @Sendable () -> Bool

    private let condition = NSCondition()
    private var jobs = FairQueue<AccountID?, Job>()
    private var isClosed = false
    /// The maximum number of jobs that wait.
    let waitingMax: Int

    /// A value may nest to a depth of 512, and each level takes several calls to read or write: up
    /// to 4 MB in a debug build. A thread only costs the memory that it touches.
    private static let stackBytes = 16 << 20
    /// One account may use this fraction of the queue.
    private static let accountPart = 4

    init(name: String, count: Int, waitingMax: Int) {
        self.waitingMax = waitingMax
        for number in 1...count {
            let thread = Thread { [self] in work() }
            thread.name = "\(name)-\(number)"
            thread.stackSize = Self.stackBytes
            thread.start()
        }
    }

    /// - Parameter account: The account whose turn it takes; nil for the server's own work, or if
    ///   the account is not known yet.
    /// - Returns: False if the queue is full or closed; the job will not run then.
    func submit(for account: AccountID? = nil, _ job: @escaping @Sendable () -> Void) -> Bool {
        enqueue(account) {
            job()
            return true
        }
    }

    /// - Throws: ``Busy`` if the queue is full, or the body's error.
    func run<T: Sendable>(
        for account: AccountID? = nil, _ body: @escaping @Sendable () throws -> T
    ) async throws -> T {
        try await run(slicesFor: account, body)
    }

    /// Runs a job in slices: calls the body until it returns a value. Between two calls, others
    /// have their turn.
    func run<T: Sendable>(
        slicesFor account: AccountID?, _ body: @escaping @Sendable () throws -> T?
    ) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            run(slicesFor: account, body) { continuation.resume(with: $0) }
        }
    }

    /// The same with a callback, on the thread; at once if the queue is full.
    func run<T: Sendable>(
        slicesFor account: AccountID?, _ body: @escaping @Sendable () throws -> T?,
        then: @escaping @Sendable (Result<T, any Error>) -> Void
    ) {
        let isAccepted = enqueue(account) {
            do {
                guard let result = try body() else { return false }
                then(.success(result))
            } catch { then(.failure(error)) }
            return true
        }
        if !isAccepted { then(.failure(Busy())) }
    }

    private func enqueue(_ account: AccountID?, _ job: @escaping Job) -> Bool {
        condition.lock()
        defer { condition.unlock() }
        let max = account == nil ? waitingMax : Swift.max(1, waitingMax / Self.accountPart)
        guard !isClosed, jobs.count < waitingMax, jobs.count(of: account) < max else {
            return false
        }
        jobs.append(job, of: account)
        condition.signal()
        return true
    }

    /// The number of jobs that wait for a thread.
    var waitingCount: Int {
        condition.lock()
        defer { condition.unlock() }
        return jobs.count
    }

    /// Ends the threads once the waiting jobs are done.
    func close() {
        condition.lock()
        isClosed = true
        condition.broadcast()
        condition.unlock()
    }

    private func work() {
        while let (account, job) = take() {
            if !job() { putBack(job, account) }
        }
    }

    private func take() -> (AccountID?, Job)? {
        condition.lock()
        defer { condition.unlock() }
        while true {
            if let (account, job) = jobs.next() { return (account, job) }
            guard !isClosed else { return nil }
            condition.wait()
        }
    }

    private func putBack(_ job: @escaping Job, _ account: AccountID?) {
        condition.lock()
        jobs.putBack(job, of: account)
        condition.signal()
        condition.unlock()
    }
}

/// The queue is full.
struct Busy: Error, Hashable, Sendable {}
