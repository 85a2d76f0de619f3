// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// A program of this package's build.
package struct ProgramFile: Sendable {
    private let name: String
    private let knownPath: String?

    package init(_ name: String) { (self.name, knownPath) = (name, nil) }

    package init(path: String) { (name, knownPath) = (path, path) }

    package static let ubiquity = ProgramFile("ubiquity")
    package static let worker = ProgramFile("UbiquityTestWorker")

    /// - Returns: Where the build put it.
    /// - Throws: ``Trouble`` if it is not built.
    package func path() throws -> String {
        let places = knownPath.map { [$0] } ?? Self.folders.map { $0 + "/" + name }
        guard let place = places.first(where: FileManager.default.isExecutableFile) else {
            throw Trouble(
                "the program `\(name)` is not built; it was looked for at "
                    + places.joined(separator: ", "))
        }
        return place
    }

    /// Beside this program, or beside the tests: a file on Linux, a bundle on Apple's systems.
    private static var folders: [String] {
        let bundles = Bundle.allBundles.filter { $0.bundlePath.hasSuffix(".xctest") }
        let files =
            [Bundle.main.executablePath ?? "", CommandLine.arguments[0]]
            + bundles.map(\.bundlePath)
        let folders = files.map { URL(fileURLWithPath: $0).deletingLastPathComponent().path }
        return folders + [FileManager.default.currentDirectoryPath + "/.build/debug"]
    }
}

/// The reason a process, or whatever needs it, cannot go on: one sentence.
package struct Trouble: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }

    /// The failure of the last call, with the system's reason.
    package static func system(_ call: String) -> Trouble {
        Trouble("\(call): \(String(cString: strerror(errno)))")
    }
}
