// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness
import Synchronization

/// A disk so small that it can be filled: a file system in memory.
///
/// Shared state, guarded by a mutex each: when it was full last, for one task fills it, and others ask;
/// and all disks, for a signal unmounts them.
final class SmallDisk: Sendable {
    let folder: String
    private let fullUntil = Mutex<Int64>(.min)

    private static let all = Mutex<[SmallDisk]>([])

    /// - Parameter folder: Is made.
    init(mountingAt folder: String) throws {
        self.folder = folder
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let size = "size=\(Self.mebibytes)m,mode=700"
        guard mount("torture", folder, "tmpfs", 0, size) == 0 else {
            throw Trouble.system("no small disk")
        }
        Self.all.withLock { $0.append(self) }
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

    /// Before their folders can be removed.
    static func unmountAll() {
        for disk in all.withLock(\.self) { umount2(disk.folder, Int32(MNT_DETACH)) }
    }

    /// Copies what is on them: the disks go with this process.
    static func keepAll() {
        for folder in all.withLock(\.self).map(\.folder) {
            try? FileManager.default.copyItem(atPath: folder, toPath: folder + "-kept")
        }
    }

    private var ballast: String { folder + "/ballast" }
}
