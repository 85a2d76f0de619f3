// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Ubiquity

/// The file of some preferences on Linux, used to see quickly whether another process wrote it.
///
/// Only a hint: if the file is elsewhere than expected, other processes' writes are noticed when
/// something else makes Foundation write or read the preferences.
struct PreferencesFile {
    /// Attributes that differ after a write.
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

    /// Keeps other processes' mirrors away from the file during the body. Foundation writes the
    /// file in place without a lock, and a reader of half of it would consider the preferences
    /// lost.
    ///
    /// Waits for at most a quarter of a second, and then continues anyway.
    func exclusively(_ body: () -> Void) {
        guard let lock = try? FileLock(path: lockPath) else { return body() }
        for _ in 0..<Self.attempts {
            if lock.tryLock() { break }
            Thread.sleep(forTimeInterval: Self.attemptSeconds)
        }
        // Closing the file at the end releases the lock.
        withExtendedLifetime(lock) { body() }
    }

    private static let attempts = 50
    private static let attemptSeconds = 0.005

    /// Nil if there is no such file.
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
