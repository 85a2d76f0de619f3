// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization
internal import UbiquityCore

/// Who is told of what happens in one store: observers of the notification, readers of sequences.
///
/// Everything is told on `queue`, a serial one, in the order in which it happened, and no lock is
/// held meanwhile: an observer may call anything here, and a slow one delays other news only. Never
/// the main queue unless the app asked for it: Foundation on Linux makes the poster wait for
/// observers on `queue: .main`.
///
/// Shared state: `stores`, the instances of the store, of which the last that was made stands for it
/// in notifications, and `waiting`; each by its mutex, because they come and go on any thread. The
/// broadcasts guard themselves.
final class Audience: Sendable {
    let changes = Broadcast<UbiquityChange>()
    let statuses = Broadcast<EngineStatus>()
    let errors = Broadcast<UbiquityError>()
    private let queue: any WorkQueue
    private let stores = Mutex<[WeakStore]>([])
    private let waiting = Mutex(Waiting())

    private struct WeakStore { weak var store: UbiquitousKeyValueStore? }

    /// Bounded, however long an observer takes: the engine has one notice told at a time, of statuses
    /// the newest is enough, and of errors so many.
    private struct Waiting {
        var news: [News] = []
        var isPlanned = false
    }

    private enum News {
        case notice(Notice, posted: @Sendable () -> Void)
        case status(EngineStatus)
        case error(UbiquityError)
    }

    /// As many as a reader of ``errors`` is kept.
    static let errorsMax = 64

    init(queue: any WorkQueue) { self.queue = queue }

    /// The newest instance stands for the store, and the one before it when that is gone: an app that lets
    /// its store go may have a round trip of it under way still, which keeps it.
    func adopt(_ store: UbiquitousKeyValueStore) {
        stores.withLock { stores in
            stores.removeAll { $0.store == nil }
            stores.append(WeakStore(store: store))
        }
    }

    /// - Parameter posted: Called when the observers have returned.
    func tell(_ notice: Notice, posted: @escaping @Sendable () -> Void) {
        plan { $0.append(.notice(notice, posted: posted)) }
    }

    /// Replaces a status that waits, unless a notice came between.
    func tell(_ status: EngineStatus) {
        plan { news in
            let last = news.lastIndex { if case .error = $0 { false } else { true } }
            if let last, case .status = news[last] { news.remove(at: last) }
            news.append(.status(status))
        }
    }

    func tell(_ error: UbiquityError) {
        plan { news in
            let isError = { (news: News) in if case .error = news { true } else { false } }
            if news.count(where: isError) >= Self.errorsMax,
                let first = news.firstIndex(where: isError)
            {
                news.remove(at: first)
            }
            news.append(.error(error))
        }
    }

    private func plan(_ change: (inout [News]) -> Void) {
        let mustPlan = waiting.withLock { waiting in
            change(&waiting.news)
            defer { waiting.isPlanned = true }
            return !waiting.isPlanned
        }
        if mustPlan { queue.enqueue { [self] in while let news = next() { speak(news) } } }
    }

    private func next() -> News? {
        waiting.withLock { waiting in
            waiting.isPlanned = !waiting.news.isEmpty
            return waiting.news.isEmpty ? nil : waiting.news.removeFirst()
        }
    }

    private func speak(_ news: News) {
        switch news {
        case .status(let status): statuses.send(status)
        case .error(let error): errors.send(error)
        case .notice(let notice, let posted):
            let change = UbiquityChange(notice)
            // Before the notification, whose observers may take their time.
            changes.send(change)
            if let reason = change.origin.notificationReason { post(reason, change.keys) }
            posted()
        }
    }

    private func post(_ reason: Int, _ keys: [String]) {
        NotificationCenter.default.post(
            name: UbiquitousKeyValueStore.didChangeExternallyNotification,
            object: stores.withLock { $0.last { $0.store != nil }?.store },
            userInfo: [
                // A number that casts to `Int` as well as to `NSNumber`.
                NSUbiquitousKeyValueStoreChangeReasonKey: NSNumber(value: reason),
                NSUbiquitousKeyValueStoreChangedKeysKey: keys,
            ])
    }

    func end() {
        changes.end()
        statuses.end()
        errors.end()
    }
}
