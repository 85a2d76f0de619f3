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
            throw UbiquityError(.invalid, "there can be no suite of preferences named \"\(suite)\"")
        }
        return defaults
    }
}
