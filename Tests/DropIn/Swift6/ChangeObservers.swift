// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// Observers in blocks: of any store, of the default one, of one's own; on the main queue, on a
/// queue of one's own, on the poster's.
final class ChangeObservers {
    private var observers: [any NSObjectProtocol] = []

    var count: Int { observers.count }

    init(
        store: NSUbiquitousKeyValueStore = .default,
        report: @escaping @Sendable (_ observer: String, _ keys: [String]) -> Void
    ) {
        let center = NotificationCenter.default
        let name = NSUbiquitousKeyValueStore.didChangeExternallyNotification
        let queue = OperationQueue()
        observers = [
            center.addObserver(forName: name, object: nil, queue: nil) {
                report("any store", ChangeReader.keys($0))
            },
            center.addObserver(
                forName: name, object: NSUbiquitousKeyValueStore.default, queue: .main
            ) { notification in
                report("default store", ChangeReader.keys(notification))
            },
            center.addObserver(forName: name, object: store, queue: OperationQueue.main) { note in
                let keys = note.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as! [String]
                report("this store", keys)
            },
            center.addObserver(
                forName: NSNotification.Name(
                    "NSUbiquitousKeyValueStoreDidChangeExternallyNotification"),
                object: NSUbiquitousKeyValueStore.default, queue: queue
            ) { (notification: Notification) -> Void in
                guard let info = notification.userInfo else { return }
                let keys = info[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String]
                report("own queue", keys ?? [])
            },
        ]
    }

    deinit {
        for observer in observers { NotificationCenter.default.removeObserver(observer) }
    }
}

/// The changes as an asynchronous sequence of the app's own making.
struct ChangedKeys: AsyncSequence, Sendable {
    typealias Element = [String]

    private let stream: AsyncStream<[String]>

    init() {
        stream = AsyncStream { continuation in
            nonisolated(unsafe) let observer = NotificationCenter.default.addObserver(
                forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: nil,
                queue: nil
            ) { continuation.yield(ChangeReader.keys($0)) }
            continuation.onTermination = { _ in
                NotificationCenter.default.removeObserver(observer)
            }
        }
    }

    func makeAsyncIterator() -> AsyncStream<[String]>.Iterator { stream.makeAsyncIterator() }
}
