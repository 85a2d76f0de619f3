// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization
internal import UbiquityCore

/// The subscribers of one store: observers of its notification, readers of its sequences.
///
/// They are called on the serial `queue`, in order and without a lock held. An observer may call
/// anything here, and a slow one only delays other notifications. The queue is the main queue only
/// if the app asked for it: Foundation on Linux makes the poster wait for observers on
/// `queue: .main`.
///
/// Shared state: `stores`, the instances of the store, the newest of which is the object of
/// notifications, and `waiting`. Each has its own mutex, because they change on any thread. The
/// broadcasts are thread-safe.
final class NotificationPoster: Sendable {
    let changes = Broadcast<UbiquityChange>()
    let statuses = Broadcast<EngineStatus>()
    let errors = Broadcast<UbiquityError>()
    private let queue: any WorkQueue
    private let stores = Mutex<[WeakStore]>([])
    private let waiting = Mutex(Waiting())

    private struct WeakStore { weak var store: (any AnyObject & Sendable)? }

    /// Bounded, however long an observer takes: the engine posts one notice at a time, of statuses
    /// only the newest is kept, and the number of errors is limited.
    private struct Waiting {
        var news: [Posting] = []
        var isPlanned = false
    }

    private enum Posting {
        case notice(Notice, posted: @Sendable () -> Void)
        case status(EngineStatus)
        case error(UbiquityError)
    }

    /// The same number as is kept for a reader of ``errors``.
    static let errorsMax = 64

    init(queue: any WorkQueue) { self.queue = queue }

    /// The newest instance stands for the store, and its predecessor once it is gone. An app may
    /// release its store while a round trip that retains it is still under way.
    func adopt(_ store: any AnyObject & Sendable) {
        stores.withLock { stores in
            stores.removeAll { $0.store == nil }
            stores.append(WeakStore(store: store))
        }
    }

    /// - Parameter posted: Called when the observers have returned.
    func post(_ notice: Notice, posted: @escaping @Sendable () -> Void) {
        plan { $0.append(.notice(notice, posted: posted)) }
    }

    /// Replaces a waiting status, unless a notice came after it.
    func post(_ status: EngineStatus) {
        plan { news in
            let last = news.lastIndex { if case .error = $0 { false } else { true } }
            if let last, case .status = news[last] { news.remove(at: last) }
            news.append(.status(status))
        }
    }

    func post(_ error: UbiquityError) {
        plan { news in
            let isError = { (news: Posting) in if case .error = news { true } else { false } }
            if news.count(where: isError) >= Self.errorsMax,
                let first = news.firstIndex(where: isError)
            {
                news.remove(at: first)
            }
            news.append(.error(error))
        }
    }

    private func plan(_ change: (inout [Posting]) -> Void) {
        let mustPlan = waiting.withLock { waiting in
            change(&waiting.news)
            defer { waiting.isPlanned = true }
            return !waiting.isPlanned
        }
        if mustPlan { queue.enqueue { [self] in while let news = next() { deliver(news) } } }
    }

    private func next() -> Posting? {
        waiting.withLock { waiting in
            waiting.isPlanned = !waiting.news.isEmpty
            return waiting.news.isEmpty ? nil : waiting.news.removeFirst()
        }
    }

    private func deliver(_ news: Posting) {
        switch news {
        case .status(let status): statuses.send(status)
        case .error(let error): errors.send(error)
        case .notice(let notice, let posted):
            let change = UbiquityChange(notice)
            // Before the notification, whose observers may take long.
            changes.send(change)
            if let reason = change.origin.notificationReason {
                postNotification(reason, change.keys)
            }
            posted()
        }
    }

    private func postNotification(_ reason: Int, _ keys: [String]) {
        NotificationCenter.default.post(
            name: .storeDidChangeExternally,
            object: newestStore,
            userInfo: [
                // Casts to `Int` as well as to `NSNumber`.
                NSUbiquitousKeyValueStoreChangeReasonKey: NSNumber(value: reason),
                NSUbiquitousKeyValueStoreChangedKeysKey: keys,
            ])
    }

    /// A store may be released at any moment, so each reference is read once.
    private var newestStore: (any AnyObject & Sendable)? {
        stores.withLock { stores in
            for entry in stores.reversed() {
                if let store = entry.store { return store }
            }
            return nil
        }
    }

    func end() {
        changes.end()
        statuses.end()
        errors.end()
    }
}
