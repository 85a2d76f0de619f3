// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Files that have a secret.
enum PrivateFile {
    /// - Returns: Nil if there is no such file.
    /// - Throws: ``ServerStartError/fileUnusable(path:reason:)`` where others can use it too.
    static func read(_ path: String) throws(ServerStartError) -> [UInt8]? {
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        try requirePrivate(path)
        guard let bytes = FileManager.default.contents(atPath: path) else {
            throw .fileUnusable(path: path, reason: "it cannot be read")
        }
        return [UInt8](bytes)
    }

    /// - Throws: ``ServerStartError/fileUnusable(path:reason:)`` where others can use the file.
    static func requirePrivate(_ path: String) throws(ServerStartError) {
        guard FileStatus(path: path)?.isOpenToOthers ?? false else { return }
        throw .fileUnusable(
            path: path, reason: "other users can read it; run `chmod 600 \(path)`")
    }
}
