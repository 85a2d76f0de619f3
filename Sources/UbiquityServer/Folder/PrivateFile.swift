// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Files that have a secret.
enum PrivateFile {
    /// - Returns: Nil if there is no such file.
    /// - Throws: ``ServerStartError/fileUnusable(path:reason:)`` where others can use it too.
    static func read(_ path: String) throws(ServerStartError) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw .fileUnusable(path: path, reason: DataFolder.systemReason())
        }
        let handle = FileHandle(fileDescriptor: file, closeOnDealloc: true)
        guard let status = FileStatus(file: file) else {
            throw .fileUnusable(path: path, reason: DataFolder.systemReason())
        }
        guard !status.isOpenToOthers else {
            throw .fileUnusable(
                path: path, reason: "other users can read it; run `chmod 600 \(path)`")
        }
        do { return [UInt8](try handle.readToEnd() ?? Data()) } catch {
            throw .fileUnusable(path: path, reason: "it cannot be read")
        }
    }
}
