// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// A disk so small that it can be filled: a file system in memory.
///
/// Shared state: when it was full last, guarded by a mutex: one task fills it, and others ask.
final class SmallDisk: Sendable {
    let folder: String
    private let fullUntil = Mutex<Int64>(.min)

    /// - Parameter folder: An empty one.
    init(mountingAt folder: String) throws {
        self.folder = folder
        let size = "size=\(Self.mebibytes)m,mode=700"
        guard mount("torture", folder, "tmpfs", 0, size) == 0 else {
            throw Trouble("no small disk: \(String(cString: strerror(errno)))")
        }
    }

    private static let mebibytes = 16

    /// Whether it is full, or was a moment ago: what was said then may be read now.
    var mayHaveBeenFull: Bool { fullUntil.withLock { $0 } > Chronicle.now - 5_000 }

    func fill() {
        fullUntil.withLock { $0 = .max }
        guard let file = fopen(ballast, "w") else { return }
        setvbuf(file, nil, _IONBF, 0)
        let bytes = [UInt8](repeating: 7, count: 4_096)
        while fwrite(bytes, 1, bytes.count, file) == bytes.count {}
        fclose(file)
    }

    func makeRoom() {
        unlink(ballast)
        fullUntil.withLock { $0 = Chronicle.now }
    }

    func unmount() { umount2(folder, Int32(MNT_DETACH)) }

    func copy(to path: String) {
        try? FileManager.default.copyItem(atPath: folder, toPath: path)
    }

    private var ballast: String { folder + "/ballast" }
}
