// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Detects that an open file is no longer at its path, because it was moved, removed or replaced,
/// alone or with its folder. Writes to it would be lost at a restart.
///
/// State: `last`, the last look, guarded by its mutex.
final class FilePlace: Sendable {
    private let path: String
    private let original: FileStatus?
    private let last = Mutex((time: ContinuousClock.now, isLost: false))

    /// How long a look is valid. Commits are more frequent.
    private static let validity = Duration.milliseconds(250)

    /// - Parameter path: The path of a file that was just opened.
    init(path: String) {
        self.path = path
        original = FileStatus(path: path)
    }

    var isLost: Bool {
        last.withLock { last in
            let now = ContinuousClock.now
            if let original, now - last.time >= Self.validity {
                let isThere = FileStatus(path: path)?.isSameFile(as: original) ?? false
                last = (now, !isThere)
            }
            return last.isLost
        }
    }
}
