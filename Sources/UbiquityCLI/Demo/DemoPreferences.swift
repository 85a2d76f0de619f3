// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityCore

/// The preferences that the demo imports.
struct DemoPreferences {
    var name: String
    var values: [Key: PropertyListValue]

    /// - Parameter file: Nil for the project's sample if it can be found, or otherwise built-in
    ///   values.
    init(_ file: String?) throws {
        guard let path = file ?? Self.sample else {
            (name, values) = ("some preferences", try Self.fallback())
            return
        }
        let entries = try PropertyListFile.read(try InputFile.read(path), name: path)
        let plan = ImportPlan(entries, limits: StoreLimits())
        if let rejected = plan.rejected.first {
            throw Failure(
                .badInput,
                "\(path) cannot be imported as a whole; the first reason is:\n"
                    + rejected.line)
        }
        (name, values) = ((path as NSString).lastPathComponent, plan.accepted)
    }

    /// The package's sample, looked for from the current folder and from the program's.
    private static var sample: String? {
        let file = "Examples/preferences.plist"
        var folder = (Bundle.main.executablePath ?? "") as NSString
        var candidates = [file]
        while folder.length > 1 {
            folder = folder.deletingLastPathComponent as NSString
            candidates.append(folder.appendingPathComponent(file))
        }
        return candidates.first { FileManager.default.fileExists(atPath: $0) }
    }

    private static func fallback() throws -> [Key: PropertyListValue] {
        let window: [ExactString: PropertyListValue] = [
            "x": .real(212), "y": .real(96.5), "fullScreen": .boolean(false),
        ]
        let values: [String: PropertyListValue] = [
            "EditorFontName": .string("Iosevka"), "EditorFontSize": .real(13.5),
            "AppLaunchCount": .integer(1_482), "SidebarVisible": .boolean(true),
            "BackupLastDate": .date(785_988_000), "ThemeAccentColor": .data([0xDC, 0x32, 0x2F]),
            "RecentSearches": .array([.string("sourdough"), .string("東京")]),
            "Window": .dictionary(window),
        ]
        return Dictionary(uniqueKeysWithValues: try values.map { (try Key($0.key), $0.value) })
    }
}
