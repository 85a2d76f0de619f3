// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityCore

/// The preferences that the demo imports.
struct DemoPreferences {
    let name: String
    let values: [Key: PropertyListValue]
    /// What a store cannot take, with the reasons.
    let leftOut: [String]

    /// - Parameter file: Nil for the project's sample.
    /// - Throws: Errors that name the file.
    init(_ file: String?) throws {
        let path = file ?? Self.sample
        name = (path as NSString).lastPathComponent
        var (values, leftOut) = ([Key: PropertyListValue](), [String]())
        for entry in try PropertyListFile.read(path: path) {
            do {
                let (key, value) = (try Key(entry.key), try entry.value.get())
                try StoreLimits().check(key, .value(value))
                values[key] = value
            } catch { leftOut.append("\"\(entry.key)\": \(error)") }
        }
        (self.values, self.leftOut) = (values, leftOut)
    }

    private static var sample: String {
        URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../preferences.plist").standardizedFileURL.path
    }
}
