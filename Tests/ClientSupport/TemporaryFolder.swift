// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization

/// An empty folder of a test's own, removed with it.
package final class TemporaryFolder: Sendable {
    package let path: String
    private let companions = Mutex<[any Sendable]>([])

    package init() throws {
        path = NSTemporaryDirectory() + "ubiquity-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Has something go with the folder.
    package func keep(_ companion: any Sendable) { companions.withLock { $0.append(companion) } }

    package func file(_ name: String) -> String { path + "/" + name }

    /// Whether any file in it, or below it, has these bytes.
    package func contains(_ text: String) throws -> Bool { Self.contains(text, in: path) }

    /// Whether any file in that folder, or below it, has these bytes.
    package static func contains(_ text: String, in folder: String) -> Bool {
        let files =
            FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
        return files.contains { name in
            FileManager.default.contents(atPath: "\(folder)/\(name)")?
                .range(of: Data(text.utf8)) != nil
        }
    }

    package static func permissions(_ path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return (attributes[.posixPermissions] as? NSNumber)?.intValue ?? -1
    }
}
