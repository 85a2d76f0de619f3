// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Where the build put the program `ubiquity`.
enum ProgramFile {
    struct NotFound: Error, CustomStringConvertible {
        var places: [String]

        var description: String {
            "the program `ubiquity` is not built; it was looked for at "
                + places.joined(separator: ", ")
        }
    }

    /// - Throws: ``NotFound``.
    static func path() throws -> String {
        let places = folders.map { $0 + "/ubiquity" }
        guard let place = places.first(where: FileManager.default.isExecutableFile) else {
            throw NotFound(places: places)
        }
        return place
    }

    /// Beside the tests: a file on Linux, a bundle on Apple's systems.
    private static var folders: [String] {
        let bundles = Bundle.allBundles.filter { $0.bundlePath.hasSuffix(".xctest") }
        let files = [CommandLine.arguments[0]] + bundles.map(\.bundlePath)
        let folders = files.map { URL(fileURLWithPath: $0).deletingLastPathComponent().path }
        return folders + [FileManager.default.currentDirectoryPath + "/.build/debug"]
    }
}
