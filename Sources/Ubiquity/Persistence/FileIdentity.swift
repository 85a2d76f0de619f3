// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// A file apart from its name.
struct FileIdentity: Hashable, Sendable {
    private var device: UInt64
    private var number: UInt64

    /// Nil if there is no file at the path, or if it cannot be seen.
    init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        device = UInt64(truncatingIfNeeded: status.st_dev)
        number = UInt64(truncatingIfNeeded: status.st_ino)
    }
}
