// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness
import Ubiquity
import UbiquityCore

/// The preferences that the demo imports.
struct DemoPreferences {
    let name: String
    let values: [Key: PropertyListValue]

    /// - Parameter file: Nil for the project's sample.
    /// - Throws: Errors that name the file, and what in it a store cannot take.
    init(_ file: String?) throws {
        let path = file ?? Self.sample
        name = (path as NSString).lastPathComponent
        let entries = try PropertyListFile.read(path: path).map { entry in
            do { return (try Key(entry.key), try entry.value.get()) } catch {
                throw Trouble("\(path) cannot be imported: \"\(entry.key)\": \(error)")
            }
        }
        values = Dictionary(entries) { $1 }
    }

    private static var sample: String {
        URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../preferences.plist").standardizedFileURL.path
    }
}
