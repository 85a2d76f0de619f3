// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import Synchronization
import TortureLanguage
import Ubiquity
import UbiquityCore
import UbiquitySimulation

/// An app that does what a torture says and tells it all that it did and saw.
///
/// Shared state: `scene`, the store of the moment and its observer, whose mutex also keeps the order:
/// what the app does and what it prints of it are one step, so that who reads along knows at each line
/// what the app knows. Only the thread that reads the input changes it.
final class TortureApp: Sendable {
    /// Unchecked: what the notification centre gives for an observer is only ever given back to it.
    private struct Scene: @unchecked Sendable {
        var store: UbiquitousKeyValueStore
        var observer: (any NSObjectProtocol)?
        var merging = MergingApp()
    }

    private let configuration: UbiquityConfiguration
    private let scene: Mutex<Scene?>

    init(_ configuration: UbiquityConfiguration) throws {
        self.configuration = configuration
        scene = Mutex(
            Scene(store: try UbiquitousKeyValueStore(configuration: configuration)))
    }

    /// Ends with its input.
    func run() throws {
        scene.withLock { scene in
            guard let store = scene?.store else { return }
            scene?.observer = observe(store)
            MessageOutput.print(TortureMessage.opened(store.marks))
        }
        while let line = readLine() {
            perform(try JSONDecoder().decode(TortureCommand.self, from: Data(line.utf8)))
        }
        store?.close()
    }

    private var store: UbiquitousKeyValueStore? { scene.withLock { $0?.store } }

    private func inOrder(_ body: (UbiquitousKeyValueStore) -> Void) {
        scene.withLock { scene in if let scene { body(scene.store) } }
    }

    /// Lets the store go and makes another at once, as an app does that keeps none.
    private func reopen() {
        scene.withLock { scene in
            if let observer = scene?.observer {
                NotificationCenter.default.removeObserver(observer)
            }
            scene = nil
            let store = openAnew()
            scene = Scene(store: store, observer: observe(store))
            MessageOutput.print(TortureMessage.reopened(store.marks))
        }
    }

    /// A full disk refuses that, until it has room.
    private func openAnew() -> UbiquitousKeyValueStore {
        while true {
            do { return try UbiquitousKeyValueStore(configuration: configuration) } catch {
                configuration.logger.error("The store could not be opened anew: \(error)")
                Thread.sleep(forTimeInterval: 0.1)
            }
        }
    }

    private func perform(_ command: TortureCommand) {
        switch command {
        case .write(let write): inOrder { make(write, in: $0) }
        case .merge(let number, let seed):
            scene.withLock { scene in
                if let store = scene?.store { scene?.merging.act(number, seed, in: store) }
            }
        case .declare:
            scene.withLock { scene in
                if let store = scene?.store { scene?.merging.declare(in: store) }
            }
        case .save: save()
        case .roundTrip(let number): makeRoundTrip(number)
        case .show: inOrder { MessageOutput.print(TortureMessage.shows(view(of: $0))) }
        case .reopen: reopen()
        }
    }

    // MARK: - Writing

    private func make(_ write: TortureWrite, in store: UbiquitousKeyValueStore) {
        if write.padding == nil, write.keys.allSatisfy({ store.string(forKey: $0) == nil }) {
            return MessageOutput.print(TortureMessage.passedOver)
        }
        guard write.keys.count > 1 else { return makeAlone(write, in: store) }
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
    private func makeAlone(_ write: TortureWrite, in store: UbiquitousKeyValueStore) {
        announce(write) { store.string(forKey: $0) }
        guard let text = write.text(at: 0) else {
            return store.removeObject(forKey: write.keys[0])
        }
        store.set(text, forKey: write.keys[0])
    }

    private func announce(_ write: TortureWrite, _ read: (String) -> String?) {
        var seen: [String: String] = [:]
        for key in write.keys { seen[key] = read(key) }
        MessageOutput.print(TortureMessage.writing(write, seen: seen, at: MonotonicTime.now))
    }

    // MARK: - Making sure

    /// Only this thread writes, so nothing is written between the call and what is said of it.
    private func save() {
        guard let store else { return }
        let isSaved = store.synchronize()
        let reason = isSaved ? nil : store.status.diskError ?? "it gave no reason"
        MessageOutput.print(TortureMessage.saved(failure: reason))
    }

    private func makeRoundTrip(_ number: Int) {
        MessageOutput.print(TortureMessage.roundTripBegun(number))
        guard let store else { return }
        Task {
            var failure: String?
            do { try await store.synchronizeNow() } catch { failure = "\(error)" }
            MessageOutput.print(TortureMessage.roundTripEnded(number, failure: failure))
        }
    }

    // MARK: - Seeing

    private func observe(_ store: UbiquitousKeyValueStore) -> any NSObjectProtocol {
        NotificationCenter.default.addObserver(
            forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
            queue: nil
        ) { [self] notification in
            inOrder { report(notification.userInfo ?? [:], $0) }
        }
    }

    private func report(_ info: [AnyHashable: Any], _ store: UbiquitousKeyValueStore) {
        MessageOutput.print(
            TortureMessage.notified(
                reason: info[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int,
                keys: info[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String] ?? [],
                values: store.marks))
    }

    private func view(of store: UbiquitousKeyValueStore) -> TortureView {
        let status = store.status
        var view = TortureView(
            values: [:], merged: [:], pendingKeys: status.pendingKeys,
            connection: status.connection.rawValue, lastError: status.lastError,
            diskError: status.diskError)
        try? store.write { engine, _ in
            view.values = engine.contents
            view.merged = engine.values.filter { MergedKeys.contains($0.key) }
        }
        return view
    }
}

extension UbiquitousKeyValueStore {
    /// Of one moment, without the keys whose writes merge.
    fileprivate var marks: [String: String] {
        texts.filter { name, _ in !((try? Key(name)).map(MergedKeys.contains) ?? false) }
    }
}
