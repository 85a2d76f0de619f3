// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation
internal import Synchronization
internal import Ubiquity
internal import UbiquityCore

/// Keeps preferences and a store equal, in rounds. Each round compares all keys of both, does what
/// ``MirrorRule`` says, and stores the baselines.
///
/// Shared state:
/// - `queue`, a serial one for all rounds. `domain`, `isFirst`, `timer`, `refused`, `declared` and
///   `known` belong to it.
/// - `isScheduled` and `isStopped`, guarded by their mutex, because rounds are requested on any
///   thread.
/// - The store, the selection and the poster are thread-safe constants.
final class MirrorWorker: @unchecked Sendable {
    let domain: MirroredDomain
    let store: UbiquitousKeyValueStore
    let keys: KeySelection
    let poster: MirrorNotificationPoster
    let claim: Int
    private let rounds: DispatchGroup
    private let queue = DispatchQueue(label: "ubiquity.mirror")
    private let state = Mutex(State())

    private struct State {
        var isScheduled = false
        var isStopped = false
    }

    private var isStopped: Bool { state.withLock(\.isStopped) }

    private var isFirst = true
    private var timer: (any DispatchSourceTimer)?
    /// The refused values. They are not proposed again while nothing has changed.
    var refused: [String: Refusal] = [:]
    /// The names whose policy the store knows.
    private var declared: Set<String> = []
    /// The baselines of the last round.
    var known: [String: ValueFingerprint] = [:]

    struct Refusal: Equatable {
        /// Nil for a removal.
        var mark: ValueFingerprint?
        var usage: Usage
        var limits: StoreLimits
    }

    init(
        _ domain: MirroredDomain, _ store: UbiquitousKeyValueStore, keys: KeySelection, claim: Int,
        rounds: DispatchGroup
    ) {
        self.rounds = rounds
        self.domain = domain
        self.store = store
        self.keys = keys
        self.claim = claim
        poster = MirrorNotificationPoster(store)
    }

    /// - Returns: Whether the policy was new to the store.
    func declare(_ policy: ConflictPolicy, _ name: String) -> Bool {
        guard !policy.isLatest, declared.insert(name).inserted else { return false }
        store.setConflictPolicy(policy, forKey: name)
        return true
    }

    // MARK: - Scheduling

    /// Runs the first round at once.
    func begin() { queue.sync { round() } }

    /// Schedules a round. All requests until it begins share it.
    func schedule() {
        let mustStart = state.withLock { state in
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if mustStart { queue.async { [self] in scheduledRound() } }
    }

    /// Returns after a round that began after the call.
    func roundNow() async {
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                round()
                continuation.resume()
            }
        }
    }

    /// Handles a change of the store.
    func receive(_ change: UbiquityChange) {
        queue.async { [self] in
            // Our own write.
            if change.origin == .own, change.keys.allSatisfy(isKnown) { return }
            round()
        }
    }

    /// Runs a round after each interval, from now on.
    func round(every interval: Duration) {
        queue.async { [self] in
            guard !isStopped else { return }
            let (seconds, attoseconds) = interval.components
            let nanoseconds = Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000)
            let timer = DispatchSource.makeTimerSource(queue: queue)
            timer.schedule(
                deadline: .now() + .nanoseconds(nanoseconds), repeating: .nanoseconds(nanoseconds),
                leeway: .nanoseconds(nanoseconds / 5))
            timer.setEventHandler { [weak self] in self?.round() }
            timer.activate()
            self.timer = timer
        }
    }

    /// Prevents further rounds. A round under way completes.
    func stop() {
        let isFirst = state.withLock { state in
            defer { state.isStopped = true }
            return !state.isStopped
        }
        guard isFirst else { return }
        MirrorClaims.shared.release(claim)
        poster.end()
        queue.async { [self] in
            timer?.cancel()
            timer = nil
        }
    }

    private func scheduledRound() {
        state.withLock { $0.isScheduled = false }
        round()
    }

    private func isKnown(_ name: String) -> Bool {
        keys.policy(of: name) == nil || known[name] == store.value(name)?.mark
    }

    // MARK: - The round

    private func round() {
        rounds.enter()
        defer { rounds.leave() }
        // Another mirror may exist already after a stop.
        guard !isStopped else { return }
        domain.lookAtFile()
        let round = MirrorRound(self, atStart: isFirst)
        isFirst = false
        // The preferences must not remember a change that the store's disk could still lose.
        if round.apply() { _ = store.synchronize() }
        let (taken, missed) = round.take()
        round.saveBaselines()
        known = round.known
        if round.mustFlush { domain.flush() }
        poster.post(taken)
        if missed { schedule() }
    }
}

extension MirrorWorker {
    /// For the app, on any thread.
    /// - Returns: Whether preferences can hold the value.
    func set(_ value: Any, forKey name: String) -> Bool {
        do {
            let value = try PropertyListValue(value)
            guard value.fitsPreferences else {
                poster.report(.value, name, "preferences cannot store such a date")
                return false
            }
            domain.defaults.set(value.boxed, forKey: name)
            return true
        } catch {
            poster.report(.value, name, error.description(forKey: name))
            return false
        }
    }
}
