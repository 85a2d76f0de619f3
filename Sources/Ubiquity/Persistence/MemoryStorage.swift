// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
package import UbiquityCore

/// A ``LocalStorage`` without a disk, which nobody leads.
///
/// Shared state: `content`, guarded by a mutex that every access holds, as a disk transaction would.
package final class MemoryStorage: LocalStorage {
    private let content = Mutex(DiskContent())
    private let failure: LocalStorageError?

    /// - Parameter failure: The error of every access; nil if it works.
    package init(failing failure: LocalStorageError? = nil) { self.failure = failure }

    package func load() throws -> DiskChanges { try access { $0.changes(after: nil) } }

    package func changes(after version: Int64) throws -> DiskChanges? {
        try access { $0.version == version ? nil : $0.changes(after: version) }
    }

    package func save(_ batch: SaveBatch) throws -> SaveOutcome { try access { $0.save(batch) } }

    package func refusedWrites() throws -> [RefusedWrite] { try access { $0.refused } }

    package func forgetRefusedWrites() throws { try access { $0.forgetRefusedWrites() } }

    package func tidy() {}

    package func watch(changed: @escaping @Sendable () -> Void) {}

    package func whenLeading(_ body: @escaping @Sendable () -> Void) {}

    package func close() {}

    private func access<Result: Sendable>(
        _ body: (inout DiskContent) -> Result
    ) throws -> Result {
        if let failure { throw failure }
        return content.withLock { body(&$0) }
    }
}
