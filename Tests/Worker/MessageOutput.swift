// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// The standard output. What was printed is out, even if the process is killed right after.
///
/// Shared state: the file, guarded by a mutex, for changes are printed by the store's own thread.
enum MessageOutput {
    private static let file = Mutex(FileHandle.standardOutput)

    static func print(_ message: some Encodable) {
        do {
            let line = try JSONEncoder().encode(message) + Data("\n".utf8)
            try file.withLock { try $0.write(contentsOf: line) }
        } catch { fatalError("A message could not be printed: \(error)") }
    }
}
