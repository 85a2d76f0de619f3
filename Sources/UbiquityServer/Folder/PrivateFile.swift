// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Files that control access: secrets, and trusted keys. Only the server's user and root may be
/// able to change them.
enum PrivateFile {
    /// - Returns: Nil if there is no such file.
    /// - Throws: ``ServerStartError/fileUnusable(path:reason:)`` if others can use it too.
    static func read(_ path: String) throws(ServerStartError) -> [UInt8]? {
        try read(path, requirePrivate)
    }

    /// Reads a file that others may read, but not change.
    static func readPublic(_ path: String) throws(ServerStartError) -> [UInt8]? {
        try read(path, requireTrusted)
    }

    private static func read(
        _ path: String, _ check: (String) throws(ServerStartError) -> Void
    ) throws(ServerStartError) -> [UInt8]? {
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        try check(path)
        guard let bytes = FileManager.default.contents(atPath: path) else {
            throw .fileUnusable(path: path, reason: "it cannot be read")
        }
        return [UInt8](bytes)
    }

    /// - Throws: ``ServerStartError/fileUnusable(path:reason:)`` if others can use the file.
    static func requirePrivate(_ path: String) throws(ServerStartError) {
        try requireTrusted(path)
        guard FileStatus(path: path)?.isOpenToOthers ?? false else { return }
        throw .fileUnusable(
            path: path, reason: "other users can read it; run `chmod 600 \(path)`")
    }

    /// - Throws: ``ServerStartError/fileUnusable(path:reason:)`` if others can change the file.
    private static func requireTrusted(_ path: String) throws(ServerStartError) {
        guard let status = FileStatus(path: path) else { return }
        guard !status.isForeign else {
            throw .fileUnusable(path: path, reason: "it belongs to \(status.ownerName)")
        }
        guard status.isWritableForOthers else { return }
        throw .fileUnusable(
            path: path, reason: "other users can write to it; run `chmod go-w \(path)`")
    }
}
