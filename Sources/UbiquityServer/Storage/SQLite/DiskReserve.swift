// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization

/// Disk space that is released when the disk is full, so that removals still work then: deletions,
/// erasing, signing out.
///
/// State: `isGivenUpNow`, guarded by its mutex. Only the writer's thread changes it and the file.
final class DiskReserve: Sendable {
    private let path: String
    private let isGivenUpNow = Mutex(true)

    /// Less on a small disk.
    private static let bytesMax = 8 << 20
    /// The maximum fraction of the disk.
    private static let diskDivisor = 8

    /// - Parameter path: The path of its file.
    init(path: String) {
        self.path = path
        keep()
    }

    /// Makes room for opening the database, if need be by the reserve: SQLite maps the log's index into memory,
    /// and a process that writes to a page of it for which the disk has no room is ended by the system.
    /// - Returns: Whether there is room.
    func makeRoom() -> Bool { hasRoom || giveUp() && hasRoom }

    private var hasRoom: Bool {
        let name = path + ".room"
        let file = open(name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { return errno != ENOSPC && errno != EDQUOT }
        defer {
            close(file)
            unlink(name)
        }
        return ![ENOSPC, EDQUOT].contains(posix_fallocate(file, 0, Self.roomBytes))
    }

    /// The index of a log that is as long as it usually gets, and some commits.
    private static let roomBytes: off_t = 256 << 10

    /// Whether the disk was full and is not known to have space again. Nothing that takes more
    /// space may be stored then.
    var isGivenUp: Bool { isGivenUpNow.withLock { $0 } }

    /// - Returns: Whether it was there.
    func giveUp() -> Bool {
        let wasThere = isGivenUpNow.withLock { isGivenUp in
            defer { isGivenUp = true }
            return !isGivenUp
        }
        guard wasThere else { return false }
        unlink(path)
        return true
    }

    /// Reserves the space again if the disk has it and some more.
    /// - Returns: Whether it was released until now, and is reserved again.
    @discardableResult
    func keep() -> Bool {
        guard isGivenUp else { return false }
        // If the system does not tell how full the disk is, a write will.
        guard let disk = Disk(of: path) else {
            isGivenUpNow.withLock { $0 = false }
            return true
        }
        let bytes = min(Self.bytesMax, disk.bytes / Self.diskDivisor)
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { return false }
        defer { close(file) }
        let has = Int(lseek(file, 0, SEEK_END))
        let isThere =
            has >= bytes
            || disk.freeBytes - bytes + has >= bytes / 2
                && posix_fallocate(file, 0, off_t(bytes)) == 0
        if isThere { isGivenUpNow.withLock { $0 = false } } else { unlink(path) }
        return isThere
    }

    private struct Disk {
        var bytes: Int
        var freeBytes: Int

        init?(of path: String) {
            var status = statvfs()
            guard statvfs((path as NSString).deletingLastPathComponent, &status) == 0 else {
                return nil
            }
            func product(_ a: UInt, _ b: UInt) -> Int {
                Int(clamping: UInt64(a).multipliedReportingOverflow(by: UInt64(b)).partialValue)
            }
            bytes = product(UInt(status.f_blocks), UInt(status.f_frsize))
            freeBytes = product(UInt(status.f_bavail), UInt(status.f_frsize))
        }
    }
}
