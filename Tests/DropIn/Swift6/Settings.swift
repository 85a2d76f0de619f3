// SPDX-License-Identifier: Apache-2.0

import Foundation
import Observation
import Ubiquity

/// The settings of an app: one object, on the main actor, that a view watches.
@MainActor
@Observable
final class Settings {
    static let shared = Settings()

    @ObservationIgnored private let store: NSUbiquitousKeyValueStore
    @ObservationIgnored private var task: Task<Void, Never>?

    var userName: String {
        didSet { store.set(userName, forKey: "userName") }
    }
    var isSoundOn: Bool {
        didSet { store.set(isSoundOn, forKey: "isSoundOn") }
    }
    var volume: Double {
        didSet { store.set(volume, forKey: "volume") }
    }
    var launches: Int {
        didSet { store.set(Int64(launches), forKey: "launches") }
    }
    var lastLaunch: Date? {
        didSet { store.set(lastLaunch, forKey: "lastLaunch") }
    }

    init(store: NSUbiquitousKeyValueStore = .default) {
        self.store = store
        userName = store.string(forKey: "userName") ?? "Nobody"
        isSoundOn = store.object(forKey: "isSoundOn") as? Bool ?? true
        volume = store.double(forKey: "volume")
        launches = Int(store.longLong(forKey: "launches"))
        lastLaunch = store.object(forKey: "lastLaunch") as? Date
    }

    func watch() {
        task = Task { [weak self] in
            for await keys in ChangedKeys() { self?.reload(keys) }
        }
    }

    func stop() { task?.cancel() }

    func reload(_ keys: [String]) {
        for key in keys {
            switch key {
            case "userName": userName = store.string(forKey: key) ?? userName
            case "isSoundOn": isSoundOn = store.bool(forKey: key)
            case "volume": volume = store.double(forKey: key)
            case "launches": launches = Int(truncatingIfNeeded: store.longLong(forKey: key))
            case "lastLaunch": lastLaunch = store.object(forKey: key) as? Date
            default: break
            }
        }
    }
}
