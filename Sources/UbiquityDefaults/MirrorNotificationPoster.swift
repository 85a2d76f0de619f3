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
/// Shared state: `state`, guarded by its mutex, because readers come and go on any thread.
final class MirrorNotificationPoster: Sendable {
    private struct State {
        var changeReaders: [Int: ChangeReader] = [:]
        var issueReaders: [Int: AsyncStream<MirrorIssue>.Continuation] = [:]
        var readers = 0
        /// The current issues by key.
        var issues: [String: MirrorIssue] = [:]
        /// The news not delivered yet. Keys are combined and only the newest issues kept, however
        /// long an observer takes.
        var changed: Set<String> = []
        var news: [MirrorIssue] = []
        var isPlanned = false
        var isOver = false

        /// - Returns: Whether the caller must start the delivery.
        mutating func plan() -> Bool {
            defer { isPlanned = true }
            return !isPlanned
        }
    }

    private struct ChangeReader {
        var wake: AsyncStream<Void>.Continuation
        var keys: Set<String> = []
    }

    private static let issuesMax = 1_024

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

    // MARK: - Changes

    func post(_ keys: [String]) {
        guard !keys.isEmpty else { return }
        let mustStart = state.withLock { state in
            state.changed.formUnion(keys)
            return state.plan()
        }
        if mustStart { queue.async { [self] in postWaiting() } }
    }

    private func postWaiting() {
        while let (keys, issues) = takeWaiting() {
            if !keys.isEmpty { postNotification(keys) }
            for issue in issues { deliver(issue) }
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

    private func postNotification(_ keys: [String]) {
        for wake in note(keys) { wake.yield() }
        guard let mirror = mirror.withLock(\.mirror) else { return }
        NotificationCenter.default.post(
            name: DefaultsMirror.didChangeDefaultsNotification, object: mirror,
            userInfo: [DefaultsMirror.changedKeysKey: keys])
    }

    private func note(_ keys: [String]) -> [AsyncStream<Void>.Continuation] {
        state.withLock { state in
            for number in state.changeReaders.keys {
                state.changeReaders[number]?.keys.formUnion(keys)
            }
            return state.changeReaders.values.map(\.wake)
        }
    }

    /// A slow reader gets the keys of several changes combined.
    func changes() -> some AsyncSequence<[String], Never> & Sendable {
        let (wakes, wake) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = add { $0.changeReaders[$1] = ChangeReader(wake: wake) }
        wake.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.changeReaders.removeValue(forKey: number) }
        }
        if number == 0 { wake.finish() }
        return wakes.compactMap { [weak self] in self?.takeKeys(number) }
    }

    private func takeKeys(_ number: Int) -> [String]? {
        state.withLock { state in
            guard let keys = state.changeReaders[number]?.keys, !keys.isEmpty else { return nil }
            state.changeReaders[number]?.keys = []
            return keys.sorted()
        }
    }

    // MARK: - Issues

    /// Reports an issue once for as long as it stays the same.
    func report(_ kind: MirrorIssue.Kind, _ key: String, _ reason: String) {
        let issue = MirrorIssue(
            key: key, kind: kind, description: "the key \"\(key)\" is not mirrored: \(reason)")
        let mustStart = state.withLock { state in
            guard state.issues[key] != issue, state.issues.count < Self.issuesMax else {
                return false
            }
            state.issues[key] = issue
            if state.news.count >= Self.issuesMax { state.news.removeFirst() }
            state.news.append(issue)
            return state.plan()
        }
        if mustStart { queue.async { [self] in postWaiting() } }
    }

    /// Removes the issue with this key, unless it is about a discarded change.
    func resolve(_ key: String) {
        state.withLock { state in
            guard !state.issues.isEmpty, state.issues[key]?.kind != .discarded else { return }
            state.issues[key] = nil
        }
    }

    private func deliver(_ issue: MirrorIssue) {
        store.report(
            UbiquityError(issue.kind == .refused ? .refused : .invalid, issue.description))
        for reader in state.withLock({ Array($0.issueReaders.values) }) { reader.yield(issue) }
    }

    /// Begins with the current issues.
    func issues() -> AsyncStream<MirrorIssue> {
        let (stream, reader) = AsyncStream.makeStream(
            of: MirrorIssue.self, bufferingPolicy: .bufferingNewest(Self.issuesMax))
        let number = add { state, number in
            for issue in state.issues.values { reader.yield(issue) }
            state.issueReaders[number] = reader
        }
        reader.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.issueReaders.removeValue(forKey: number) }
        }
        if number == 0 { reader.finish() }
        return stream
    }

    // MARK: - Readers

    /// - Returns: The reader's number; 0 if nothing will follow.
    private func add(_ body: (inout State, Int) -> Void) -> Int {
        state.withLock { state in
            guard !state.isOver else { return 0 }
            state.readers += 1
            body(&state, state.readers)
            return state.readers
        }
    }

    func end() {
        let (wakes, readers) = state.withLock { state in
            state.isOver = true
            return (state.changeReaders.values.map(\.wake), Array(state.issueReaders.values))
        }
        for wake in wakes { wake.finish() }
        for reader in readers { reader.finish() }
    }
}
