// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation
internal import Synchronization
internal import Ubiquity
internal import UbiquityCore

/// The subscribers of a mirror: observers of its notification, readers of its sequences, the log.
///
/// They are called on the serial `queue`, without a lock held, and never within a call of the app.
///
/// Shared state: `state`, guarded by its mutex, because keys and issues are reported on any thread.
final class MirrorNotificationPoster: Sendable {
    private struct State {
        /// The current issues by key.
        var issues: [String: MirrorIssue] = [:]
        /// The news not delivered yet. Keys are combined and only the newest issues kept, however
        /// long an observer takes.
        var changed: Set<String> = []
        var news: [MirrorIssue] = []
        var isPlanned = false
    }

    private static let issuesMax = 1_024

    private let changed = Broadcast<UbiquityChange>()
    private let reported = Broadcast<MirrorIssue>()
    private let store: UbiquitousKeyValueStore
    private let queue = DispatchQueue(label: "ubiquity.mirror.notices")
    private let state = Mutex(State())
    /// The object of notifications. Set once, before the first is posted.
    private let mirror = Mutex<WeakMirror>(WeakMirror())

    private struct WeakMirror { weak var mirror: DefaultsMirror? }

    init(_ store: UbiquitousKeyValueStore) { self.store = store }

    func attach(to mirror: DefaultsMirror) {
        self.mirror.withLock { $0.mirror = mirror }
    }

    func end() {
        changed.end()
        reported.end()
    }

    // MARK: - For readers

    /// A slow reader gets the keys of several changes combined.
    func changes() -> some AsyncSequence<[String], Never> & Sendable {
        UbiquityChanges(changed).map(\.keys)
    }

    /// Begins with the current issues.
    func issues() -> AsyncStream<MirrorIssue> {
        // With the lock held, so that an issue reported meanwhile is not missed.
        state.withLock { state in
            reported.stream(newest: Self.issuesMax, first: Array(state.issues.values))
        }
    }

    // MARK: - For the mirror

    func post(_ keys: [String]) {
        plan { state in
            state.changed.formUnion(keys)
            return !keys.isEmpty
        }
    }

    /// Reports an issue once for as long as it stays the same.
    func report(_ kind: MirrorIssue.Kind, _ key: String, _ reason: String) {
        let issue = MirrorIssue(
            key: key, kind: kind, description: "the key \"\(key)\" is not mirrored: \(reason)")
        plan { state in
            guard state.issues[key] != issue, state.issues.count < Self.issuesMax else {
                return false
            }
            state.issues[key] = issue
            if state.news.count >= Self.issuesMax { state.news.removeFirst() }
            state.news.append(issue)
            return true
        }
    }

    /// Removes the issue with this key, unless it is about a discarded change.
    func resolve(_ key: String) {
        state.withLock { state in
            guard !state.issues.isEmpty, state.issues[key]?.kind != .discarded else { return }
            state.issues[key] = nil
        }
    }

    // MARK: - Delivering

    /// - Parameter add: Returns whether there is anything to deliver.
    private func plan(_ add: (inout State) -> Bool) {
        let mustStart = state.withLock { state in
            guard add(&state) else { return false }
            defer { state.isPlanned = true }
            return !state.isPlanned
        }
        if mustStart {
            queue.async { [self] in
                while let (keys, issues) = takeWaiting() { deliver(keys, issues) }
            }
        }
    }

    private func takeWaiting() -> (keys: [String], issues: [MirrorIssue])? {
        state.withLock { state in
            state.isPlanned = !state.changed.isEmpty || !state.news.isEmpty
            guard state.isPlanned else { return nil }
            defer { (state.changed, state.news) = ([], []) }
            return (state.changed.sorted(), state.news)
        }
    }

    private func deliver(_ keys: [String], _ issues: [MirrorIssue]) {
        if !keys.isEmpty {
            changed.send(UbiquityChange(origin: .elsewhere, keys: keys))
            postNotification(keys)
        }
        for issue in issues {
            store.report(
                UbiquityError(issue.kind == .refused ? .refused : .invalid, issue.description))
            reported.send(issue)
        }
    }

    private func postNotification(_ keys: [String]) {
        guard let mirror = mirror.withLock(\.mirror) else { return }
        NotificationCenter.default.post(
            name: DefaultsMirror.didChangeDefaultsNotification, object: mirror,
            userInfo: [DefaultsMirror.changedKeysKey: keys])
    }
}
