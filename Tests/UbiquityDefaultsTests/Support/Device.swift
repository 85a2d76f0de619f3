// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Logging
import Ubiquity

@testable import UbiquityDefaults

/// A device with an app: a home for its store, and preferences of its own. Nothing of it is left
/// after the test.
final class Device: Sendable {
    static let identifier = "TEAM.com.example.mirror"

    let suite = "ubiquity-test-" + UUID().uuidString
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    deinit {
        // Or they would write once more.
        MirrorClaims.shared.waitForRounds(of: .suite(suite))
        UserDefaults.standard.removePersistentDomain(forName: suite)
        try? FileManager.default.removeItem(
            atPath: PreferencesFile.folder + "/.\(suite).ubiquity-lock")
    }

    var home: String { folder.file("home") }

    /// The app's preferences.
    var defaults: UserDefaults {
        guard let defaults = UserDefaults(suiteName: suite) else { fatalError("no suite") }
        return defaults
    }

    /// The values that were set in them, without the mirror's bookkeeping.
    var own: [String: Any] {
        (defaults.persistentDomain(forName: suite) ?? [:]).filter {
            !$0.key.hasPrefix("UbiquityMirror:")
        }
    }

    #if os(Linux)
    /// The preferences on disk, which survive if the app is killed.
    var saved: [String: Any] {
        get throws {
            let file = URL(fileURLWithPath: PreferencesFile.folder + "/\(suite).plist")
            let values = try PropertyListSerialization.propertyList(
                from: Data(contentsOf: file), options: [], format: nil)
            return values as? [String: Any] ?? [:]
        }
    }
    #endif

    private var copy: String { folder.file("copy") }

    /// Keeps a copy of the store's files, while no app runs.
    func copyStores() throws {
        try FileManager.default.copyItem(atPath: "\(home)/stores", toPath: copy)
    }

    /// Puts the copy in place of the store's files.
    func restoreStores() throws {
        try FileManager.default.removeItem(atPath: "\(home)/stores")
        try FileManager.default.moveItem(atPath: copy, toPath: "\(home)/stores")
    }

    /// The app begins to run.
    func openStore(
        _ configure: (inout UbiquityConfiguration) -> Void = { _ in }
    ) throws -> UbiquitousKeyValueStore {
        var configuration = UbiquityConfiguration(identifier: Self.identifier, home: home)
        configuration.logger = .silent
        configure(&configuration)
        return try UbiquitousKeyValueStore(configuration: configuration)
    }

    /// Runs the app with a mirror that looks only when it is told to, then ends it.
    func run(
        _ keys: [MirroredKeys], _ body: (DefaultsMirror) async throws -> Void
    ) async throws {
        let store = try openStore()
        let mirror = try DefaultsMirror(.suite(suite), store, keys: keys, interval: .zero)
        defer {
            mirror.stop()
            MirrorClaims.shared.waitForRounds(of: .suite(suite))
            store.close()
        }
        try await body(mirror)
    }

    /// Reads the preferences from the disk, as after a restart.
    func restart() { defaults.synchronize() }
}
