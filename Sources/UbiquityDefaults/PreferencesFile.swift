// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Ubiquity

/// The file of some preferences on Linux, to see by a glance whether another process wrote it.
///
/// Only a hint: where it lies elsewhere than thought, other processes' writes are noticed when
/// something else has the preferences written or read anew.
struct PreferencesFile {
    /// What is another one after a write.
    struct Look: Equatable {
        var date: Date?
        var number: Int?
        var bytes: Int?
    }

    private let path: String
    private let lockPath: String

    init(_ domain: DefaultsDomain) {
        let name = domain.suite ?? ProcessInfo.processInfo.processName
        let folder = Self.folder
        path = "\(folder)/\(name).plist"
        lockPath = "\(folder)/.\(name).ubiquity-lock"
    }

    static var folder: String {
        let folder = ProcessInfo.processInfo.environment["XDG_CONFIG_HOME"] ?? ""
        return folder.isEmpty ? NSHomeDirectory() + "/.config" : folder
    }

    /// Keeps other processes' mirrors from the file meanwhile: Foundation writes it in place and
    /// without a lock, and who reads half of it takes the preferences for lost.
    ///
    /// Does not wait longer than a quarter of a second, and goes on then.
    func exclusively(_ body: () -> Void) {
        guard let lock = try? FileLock(path: lockPath) else { return body() }
        for _ in 0..<Self.attempts {
            if lock.tryLock() { break }
            Thread.sleep(forTimeInterval: Self.attemptSeconds)
        }
        // Closing the file, at the end, unlocks it.
        withExtendedLifetime(lock) { body() }
    }

    private static let attempts = 50
    private static let attemptSeconds = 0.005

    /// Nil: there is no such file.
    var look: Look? {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else {
            return nil
        }
        return Look(
            date: attributes[.modificationDate] as? Date,
            number: (attributes[.systemFileNumber] as? NSNumber)?.intValue,
            bytes: (attributes[.size] as? NSNumber)?.intValue)
    }
}
