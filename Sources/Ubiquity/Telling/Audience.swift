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
/// Shared state: `stores`, the instances of the store, of which the first that is left stands for it
/// in notifications; by its mutex, because they come and go on any thread. The broadcasts guard
/// themselves.
final class Audience: Sendable {
    let changes = Broadcast<UbiquityChange>()
    let statuses = Broadcast<EngineStatus>()
    let errors = Broadcast<UbiquityError>()
    private let queue: any WorkQueue
    private let stores = Mutex<[WeakStore]>([])

    private struct WeakStore { weak var store: UbiquitousKeyValueStore? }

    init(queue: any WorkQueue) { self.queue = queue }

    /// The first instance stands for the store, and the next when it is gone.
    func adopt(_ store: UbiquitousKeyValueStore) {
        stores.withLock { stores in
            stores.removeAll { $0.store == nil }
            stores.append(WeakStore(store: store))
        }
    }

    func tell(_ notice: Notice) {
        queue.enqueue { [self] in
            let change = UbiquityChange(notice)
            // Before the notification, whose observers may take their time.
            changes.send(change)
            if let reason = change.origin.notificationReason { post(reason, change.keys) }
        }
    }

    func tell(_ status: EngineStatus) { queue.enqueue { [self] in statuses.send(status) } }

    func tell(_ error: UbiquityError) { queue.enqueue { [self] in errors.send(error) } }

    private func post(_ reason: Int, _ keys: [String]) {
        NotificationCenter.default.post(
            name: UbiquitousKeyValueStore.didChangeExternallyNotification,
            object: stores.withLock { $0.lazy.compactMap(\.store).first },
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
