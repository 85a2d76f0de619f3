// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// Finds the owner of a credential.
///
/// State: `known`, a cache of the storage, guarded by its lock, so that a push needs no look-up. A
/// revocation removes an entry at once.
final class Authenticator: Sendable {
    private struct Known {
        var devices: [SecretHash: DeviceRights] = [:]
        /// Counts removals. A look-up that began before one must not put its result into the cache.
        var generation = 0
    }

    private let known = Mutex(Known())
    private let storage: any ServerStorage
    private let threads: BlockingThreads
    private let operatorHash: SecretHash
    private let lastSeen: LastSeenBuffer

    /// The cache is emptied when it exceeds this size.
    private static let rememberedMax = 65_536

    init(
        storage: any ServerStorage, threads: BlockingThreads, operatorHash: SecretHash,
        lastSeen: LastSeenBuffer
    ) {
        self.storage = storage
        self.threads = threads
        self.operatorHash = operatorHash
        self.lastSeen = lastSeen
    }

    /// - Parameter credential: Nil if the request has none.
    /// - Throws: ``StorageError``, ``Busy``.
    func caller(_ credential: String?) async throws -> Caller {
        guard let credential else { return .nobody }
        let hash = SecretHash(of: credential)
        if hash.isEqual(to: operatorHash) { return .operator }
        // Anything else is not a device's credential, and needs no look-up.
        guard credential.hasPrefix(Secret.devicePrefix), let rights = try await find(hash) else {
            return .stranger
        }
        lastSeen.see(rights.reference)
        return .device(rights)
    }

    private func find(_ hash: SecretHash) async throws -> DeviceRights? {
        let (found, generation) = known.withLock { ($0.devices[hash], $0.generation) }
        if let found { return found }
        let storage = storage
        let rights = try await threads.run { try storage.device(credential: hash)?.rights }
        guard let rights else { return nil }
        known.withLock { known in
            guard known.generation == generation else { return }
            if known.devices.count >= Self.rememberedMax { known.devices.removeAll() }
            known.devices[hash] = rights
        }
        return rights
    }

    /// Call after the storage has revoked the device.
    func invalidate(_ device: DeviceReference) { invalidate { $0.reference == device } }

    /// Call after the storage has erased the account.
    func invalidate(_ account: AccountID) { invalidate { $0.account == account } }

    private func invalidate(_ isGone: (DeviceRights) -> Bool) {
        known.withLock { known in
            known.devices = known.devices.filter { !isGone($0.value) }
            known.generation += 1
        }
    }
}
