// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// Finds devices by their credentials. Those that wait are looked up together, which costs little
/// more than to look up one.
///
/// State: `state`, guarded by its lock.
final class CredentialLookup: Sendable {
    private struct Request: Sendable {
        let credential: SecretHash
        let then: @Sendable (Result<DeviceRights?, any Error>) -> Void
    }

    private struct State {
        /// In order of arrival.
        var waiting: [Request] = []
        /// The number of jobs; the last one ends when none waits.
        var jobs = 0
    }

    private let state = Mutex(State())
    private let threads: BlockingThreads
    private let find: Find

    /// More than one, because a slow disk may hold one up.
    private static let jobsMax = 2
    private static let groupMax = 64

    /// As ``AccountStorage/rights(of:)``.
    typealias Find =
        @Sendable ([SecretHash]) throws(StorageError) -> [Result<DeviceRights?, StorageError>]

    init(threads: BlockingThreads, find: @escaping Find) {
        self.threads = threads
        self.find = find
    }

    /// Calls back on another thread with the rights, nil for an unknown or revoked credential, or
    /// ``StorageError``; with ``Busy``, maybe at once, if too many wait.
    func rights(
        of credential: SecretHash,
        then: @escaping @Sendable (Result<DeviceRights?, any Error>) -> Void
    ) {
        let (isAccepted, needsJob) = state.withLock { state in
            guard state.waiting.count < threads.waitingMax else { return (false, false) }
            state.waiting.append(Request(credential: credential, then: then))
            guard state.jobs < Self.jobsMax else { return (true, false) }
            state.jobs += 1
            return (true, true)
        }
        if !isAccepted { then(.failure(Busy())) }
        if needsJob { begin() }
    }

    /// The number of look-ups that wait for a thread.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    private func begin() {
        if !threads.submit({ [self] in lookUpGroup() }) {
            for request in stranded() { request.then(.failure(Busy())) }
        }
    }

    /// Looks up later arrivals in another job, so that other jobs have their turn.
    private func lookUpGroup() {
        let group = state.withLock { state in
            let group = Array(state.waiting.prefix(Self.groupMax))
            state.waiting.removeFirst(group.count)
            return group
        }
        // Another job may have been faster.
        if !group.isEmpty { lookUp(group) }
        let goesOn = state.withLock { state in
            if state.waiting.isEmpty { state.jobs -= 1 }
            return !state.waiting.isEmpty
        }
        if goesOn { begin() }
    }

    private func lookUp(_ group: [Request]) {
        do throws(StorageError) {
            let found = try find(group.map(\.credential))
            for (request, rights) in zip(group, found) { request.then(rights.mapError { $0 }) }
        } catch {
            for request in group { request.then(.failure(error)) }
        }
    }

    /// A job could not begin.
    /// - Returns: Those that wait, if no other job takes them.
    private func stranded() -> [Request] {
        state.withLock { state in
            state.jobs -= 1
            guard state.jobs == 0 else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
    }
}
