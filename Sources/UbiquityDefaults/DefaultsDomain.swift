// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Ubiquity

/// The domain of an app's preferences: the standard one, or a suite's.
///
/// A name and not a `UserDefaults` object, because such an object tells neither which values are
/// set and which are registered defaults, nor its domain.
public struct DefaultsDomain: Hashable, Sendable {
    /// Nil for the app's own.
    let suite: String?

    /// The domain of `UserDefaults.standard`.
    public static let standard = DefaultsDomain(suite: nil)

    /// The domain of `UserDefaults(suiteName:)` with this name.
    /// <!-- Snippets/Preferences.swift: suite -->
    /// ```swift
    /// func openShared() throws -> DefaultsMirror {
    ///     let store = try UbiquitousKeyValueStore(identifier: "TEAMID.com.example.editor")
    ///     return try DefaultsMirror(.suite("com.example.editor"), store, keys: [.prefix("editor.")])
    /// }
    /// ```
    public static func suite(_ name: String) -> DefaultsDomain { DefaultsDomain(suite: name) }

    /// The name for `persistentDomain(forName:)`, which returns the values that are set.
    var name: String {
        if let suite { return suite }
        #if canImport(Darwin)
        return Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
        #else
        // Foundation's name for the current program's domain. The program's own name would denote
        // another copy of the same file, which does not see unwritten changes.
        return "kCFPreferencesCurrentApplication"
        #endif
    }

    /// - Throws: `UbiquityError` if such a suite is not possible.
    func open() throws -> UserDefaults {
        guard let suite else {
            #if !canImport(Darwin)
            // Makes Foundation find the program's own file first. If it is first asked for `name`,
            // it takes that for a file name, and all programs would share that file and not see
            // their own.
            _ = UserDefaults.standard.object(forKey: name)
            #endif
            return .standard
        }
        guard !suite.isEmpty, let defaults = UserDefaults(suiteName: suite) else {
            throw UbiquityError(.invalid, "\"\(suite)\" cannot be the name of a preferences suite")
        }
        return defaults
    }
}

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
    /// While a mirror writes, what the file had before: Foundation empties the file first, and then
    /// the process may be killed or the disk be full.
    private let copyPath: String

    init(_ domain: DefaultsDomain) {
        let name = domain.suite ?? ProcessInfo.processInfo.processName
        let folder = Self.folder
        path = "\(folder)/\(name).plist"
        lockPath = "\(folder)/.\(name).ubiquity-lock"
        copyPath = "\(folder)/.\(name).ubiquity-copy"
    }

    static var folder: String {
        let folder = ProcessInfo.processInfo.environment["XDG_CONFIG_HOME"] ?? ""
        return folder.isEmpty ? NSHomeDirectory() + "/.config" : folder
    }

    /// Keeps other processes' mirrors away from the file during the body. Foundation writes the
    /// file in place without a lock, and a reader of half of it would consider the preferences
    /// lost. So after a write that did not succeed, or whose process was killed, the file becomes
    /// what it was before.
    ///
    /// Waits for at most a quarter of a second, and then continues anyway.
    func exclusively(_ body: () -> Void) {
        guard let lock = try? FileLock(path: lockPath) else { return body() }
        var isLocked = lock.tryLock()
        for _ in 1..<Self.attempts where !isLocked {
            Thread.sleep(forTimeInterval: Self.attemptSeconds)
            isLocked = lock.tryLock()
        }
        // Closing the file at the end releases the lock.
        withExtendedLifetime(lock) {
            guard isLocked else { return body() }
            endWrite()
            keepCopy()
            body()
            endWrite()
        }
    }

    /// Not by `copyItem`, which never ends if the file becomes shorter while it is copied: apps write
    /// their preferences at any time.
    private func keepCopy() {
        guard let data = FileManager.default.contents(atPath: path) else { return }
        try? PrivateFiles.replace(copyPath, with: data)
    }

    /// Ends a write of this process, or of one that was killed.
    private func endWrite() {
        guard FileManager.default.fileExists(atPath: copyPath) else { return }
        if isReadable {
            try? FileManager.default.removeItem(atPath: copyPath)
        } else {
            var file = stat()
            if stat(path, &file) == 0 { chmod(copyPath, file.st_mode & 0o777) }
            rename(copyPath, path)
        }
    }

    private var isReadable: Bool {
        guard let data = FileManager.default.contents(atPath: path) else { return false }
        return (try? PropertyListSerialization.propertyList(from: data, format: nil)) != nil
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
