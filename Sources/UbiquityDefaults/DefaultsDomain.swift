// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Ubiquity

/// Which of an app's preferences: the standard ones, or a suite's.
///
/// A name and no `UserDefaults` object, for such an object does not say which values were set and
/// which are registered defaults, and not whose they are.
public struct DefaultsDomain: Hashable, Sendable {
    /// Nil: the app's own.
    let suite: String?

    /// Those of `UserDefaults.standard`.
    public static let standard = DefaultsDomain(suite: nil)

    /// Those of `UserDefaults(suiteName:)` with this name.
    public static func suite(_ name: String) -> DefaultsDomain { DefaultsDomain(suite: name) }

    /// What gives `persistentDomain(forName:)` the values that were set.
    var name: String {
        if let suite { return suite }
        #if canImport(Darwin)
        return Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
        #else
        // Foundation's name for the domain of the program that asks. Its own name would be another
        // copy of the same file, which does not see what is not yet written.
        return "kCFPreferencesCurrentApplication"
        #endif
    }

    /// - Throws: `UbiquityError` if there can be no such suite.
    func open() throws -> UserDefaults {
        guard let suite else {
            #if !canImport(Darwin)
            // Foundation must have found the program's file by itself. Asked by `name` first, it takes
            // that for a file's name: all programs would share that file, and not see their own.
            _ = UserDefaults.standard.object(forKey: name)
            #endif
            return .standard
        }
        guard !suite.isEmpty, let defaults = UserDefaults(suiteName: suite) else {
            throw UbiquityError(.invalid, "there can be no suite of preferences named \"\(suite)\"")
        }
        return defaults
    }
}
