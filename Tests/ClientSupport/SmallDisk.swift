// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// A file system in memory, of 16 MB. Nil where the system lets nobody mount one.
package final class SmallDisk {
    package let folder: TemporaryFolder

    package init?() throws {
        folder = try TemporaryFolder()
        guard mount("test", folder.path, "tmpfs", 0, "size=16m,mode=700") == 0 else { return nil }
    }

    deinit { umount2(folder.path, Int32(MNT_DETACH)) }

    private var ballast: String { folder.file("ballast") }

    package func fill() throws {
        guard let file = fopen(ballast, "we") else { throw CocoaError(.fileWriteUnknown) }
        setvbuf(file, nil, _IONBF, 0)
        let bytes = [UInt8](repeating: 7, count: 4_096)
        while fwrite(bytes, 1, bytes.count, file) == bytes.count {}
        fclose(file)
    }

    package func makeRoom() { unlink(ballast) }
}
