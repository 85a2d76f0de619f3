// SPDX-License-Identifier: Apache-2.0

import ExampleStage
import Foundation
import Ubiquity
import UbiquityDefaults
import UbiquityTesting

/// A device of a cloud in a test, with preferences of its own, of which nothing is left after it.
@MainActor
final class AppDevice {
    let device: TestDevice
    let store: UbiquitousKeyValueStore
    let preferences: DefaultsDomain
    let defaults: UserDefaults
    let folder: String
    private let number: Int
    private let suite = "ubiquity-example-" + UUID().uuidString

    init(_ name: String, number: Int = 0, _ cloud: TestCloud, _ identifier: String) {
        device = cloud.newDevice(name)
        store = device.openStore(identifier)
        self.number = number
        preferences = .suite(suite)
        defaults = UserDefaults(suiteName: suite) ?? .standard
        folder = NSTemporaryDirectory() + "/" + suite
        try? FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
    }

    isolated deinit {
        UserDefaults.standard.removePersistentDomain(forName: suite)
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// What the stage gives to an app.
    func stage(_ options: [String: String] = [:]) -> StageDevice {
        StageDevice(
            name: device.name, number: number, store: store, preferences: preferences,
            defaults: defaults, folder: folder, options: options)
    }
}
