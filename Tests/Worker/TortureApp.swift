// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import TortureLanguage
import Ubiquity

/// An app that does what a torture says and tells it all that it did and saw.
///
/// Shared state: `order`, which guards nothing but the order: what the app does and what it prints of
/// it are one step, so that who reads along knows at each line what the app knows.
final class TortureApp: Sendable {
    private let store: UbiquitousKeyValueStore
    private let order = Mutex(())

    init(_ store: UbiquitousKeyValueStore) { self.store = store }

    /// Ends with its input.
    func run() throws {
        order.withLock { _ in
            observe()
            MessageOutput.print(TortureMessage.opened(store.texts))
        }
        while let line = readLine() {
            perform(try JSONDecoder().decode(TortureCommand.self, from: Data(line.utf8)))
        }
    }

    private func perform(_ command: TortureCommand) {
        switch command {
        case .write(let write): order.withLock { _ in make(write) }
        case .count(let number): order.withLock { _ in count(number) }
        case .save: save()
        case .roundTrip(let number): makeRoundTrip(number)
        case .show: order.withLock { _ in MessageOutput.print(TortureMessage.shows(view)) }
        }
    }

    // MARK: - Writing

    private func make(_ write: TortureWrite) {
        if write.padding == nil, write.keys.allSatisfy({ store.string(forKey: $0) == nil }) {
            return MessageOutput.print(TortureMessage.passedOver)
        }
        guard write.keys.count > 1 else { return makeAlone(write) }
        do {
            try store.performBatch { batch in
                announce(write) { batch.object(forKey: $0) as? String }
                for (place, key) in write.keys.enumerated() {
                    try batch.set(write.text(at: place), forKey: key)
                }
            }
        } catch { MessageOutput.print(TortureMessage.refused("\(error)")) }
    }

    /// By the calls that most apps make.
    private func makeAlone(_ write: TortureWrite) {
        announce(write) { store.string(forKey: $0) }
        guard let text = write.text(at: 0) else {
            return store.removeObject(forKey: write.keys[0])
        }
        store.set(text, forKey: write.keys[0])
    }

    private func count(_ number: Int) {
        MessageOutput.print(TortureMessage.counting(number: number))
        store.increment(forKey: TortureApp.counter)
    }

    private static let counter = "count"

    private func announce(_ write: TortureWrite, _ read: (String) -> String?) {
        var seen: [String: String] = [:]
        for key in write.keys { seen[key] = read(key) }
        MessageOutput.print(TortureMessage.writing(write, seen: seen, at: MonotonicTime.now))
    }

    // MARK: - Making sure

    /// Only this thread writes, so nothing is written between the call and what is said of it.
    private func save() {
        let isSaved = store.synchronize()
        let reason = isSaved ? nil : store.status.diskError ?? "it gave no reason"
        MessageOutput.print(TortureMessage.saved(failure: reason))
    }

    private func makeRoundTrip(_ number: Int) {
        MessageOutput.print(TortureMessage.roundTripBegun(number))
        Task {
            var failure: String?
            do { try await store.synchronizeNow() } catch { failure = "\(error)" }
            MessageOutput.print(TortureMessage.roundTripEnded(number, failure: failure))
        }
    }

    // MARK: - Seeing

    /// For as long as the process lives.
    private func observe() {
        _ = NotificationCenter.default.addObserver(
            forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
            queue: nil
        ) { [self] notification in
            order.withLock { _ in tell(notification.userInfo ?? [:]) }
        }
    }

    private func tell(_ info: [AnyHashable: Any]) {
        MessageOutput.print(
            TortureMessage.told(
                reason: info[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int,
                keys: info[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String] ?? [],
                values: store.texts))
    }

    private var view: TortureView {
        let status = store.status
        return TortureView(
            values: store.texts, count: store.longLong(forKey: Self.counter),
            pendingKeys: status.pendingKeys,
            connection: status.connection.rawValue, lastError: status.lastError,
            diskError: status.diskError)
    }
}
