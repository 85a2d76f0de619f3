// SPDX-License-Identifier: Apache-2.0

import ExampleStage
import Foundation
import Ubiquity
import UbiquityDefaults
import UbiquityTesting

/// A device of a cloud in a test, with preferences of its own.
@MainActor
final class AppDevice {
    let device: TestDevice
    let store: UbiquitousKeyValueStore
    let preferences: DefaultsDomain
    let defaults: UserDefaults
    let folder: String
    private let number: Int

    init(_ name: String, number: Int = 0, _ cloud: TestCloud, _ identifier: String) {
        let suite = TestFiles.prefix + UUID().uuidString
        device = cloud.newDevice(name)
        store = device.openStore(identifier)
        self.number = number
        preferences = .suite(suite)
        defaults = UserDefaults(suiteName: suite) ?? .standard
        folder = NSTemporaryDirectory() + "/" + suite
        try? FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
    }

    /// The device as the stage gives it to an app.
    func stage(_ options: [String: String] = [:]) -> StageDevice {
        StageDevice(
            number: number, store: store, preferences: preferences, defaults: defaults,
            folder: folder, options: options)
    }
}

/// The files of these tests. They go when the tests' process ends, because a mirror may write its
/// preferences once more after its test.
enum TestFiles {
    static let prefix: String = {
        atexit { TestFiles.removeAll() }
        return "ubiquity-example-test-\(ProcessInfo.processInfo.processIdentifier)-"
    }()

    private static func removeAll() {
        let environment = ProcessInfo.processInfo.environment
        let preferences = environment["XDG_CONFIG_HOME"] ?? NSHomeDirectory() + "/.config"
        for folder in [preferences, NSTemporaryDirectory()] {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            for name in names where name.contains(prefix) {
                try? FileManager.default.removeItem(atPath: folder + "/" + name)
            }
        }
    }
}
