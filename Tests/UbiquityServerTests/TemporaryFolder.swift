// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// An empty folder of a test's own, removed with it.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "ubiquity-server-tests-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The names of the files in the server's data folder.
    func dataFiles() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: file("data")).filter { $0 != "sockets" }
    }

    func file(_ name: String) -> String { (path as NSString).appendingPathComponent(name) }
}
