// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// A program that the tests start.
enum ProgramFile: String {
    case ubiquity
    case worker = "UbiquityTestWorker"
    case torture = "UbiquityTorture"
    /// An example.
    case syncMe = "SyncMe"

    struct NotFound: Error, CustomStringConvertible {
        var program: ProgramFile
        var places: [String]

        var description: String {
            "the program `\(program.rawValue)` is not built; it was looked for at "
                + places.joined(separator: ", ")
        }
    }

    /// Where the build put it.
    /// - Throws: ``NotFound``.
    func path() throws -> String {
        let places = Self.folders.map { $0 + "/" + rawValue }
        guard let place = places.first(where: FileManager.default.isExecutableFile) else {
            throw NotFound(program: self, places: places)
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
