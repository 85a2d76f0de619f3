// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// Finds the owner of a credential.
///
/// State: `operatorHash`, guarded by its lock, because an operator may renew the credential. `known`, a
/// cache of the storage, guarded by its lock, so that a push needs no look-up. A
/// revocation removes an entry at once. If other nodes may revoke, an entry is only good for
/// ``sharedMilliseconds``, in case the news is lost.
final class Authenticator: Sendable {
    private struct Known {
        var rights: DeviceRights
        /// In milliseconds of uptime.
        var since: Int64
    }

    private let known = Mutex(RecentTable<SecretHash, Known>(bytesMax: 32 << 20))
    /// Counts removals. A look-up that began before one must not put its result into a cache.
    private let removals = Atomic(0)
    private let storage: any AccountStorage & NodeStorage
    private let lookup: CredentialLookup
    private let operatorHash: Mutex<SecretHash?>
    private let lastSeen: LastSeenBuffer
    private let clock: ServerClock

    private static let sharedMilliseconds: Int64 = 1_000

    /// - Parameter operatorHash: Nil if nobody has the operator's credential.
    init(
        storage: any AccountStorage & NodeStorage, threads: BlockingThreads,
        operatorHash: SecretHash?, lastSeen: LastSeenBuffer, clock: ServerClock
    ) {
        self.storage = storage
        lookup = CredentialLookup(threads: threads) { credentials throws(StorageError) in
            try storage.rights(of: credentials)
        }
        self.operatorHash = Mutex(operatorHash)
        self.lastSeen = lastSeen
        self.clock = clock
    }

    /// - Parameter credential: Nil if the request has none.
    /// - Throws: ``StorageError``, ``Busy``.
    func caller(_ credential: String?) async throws -> Caller {
        try await withCheckedThrowingContinuation { continuation in
            caller(credential) { continuation.resume(with: $0) }
        }
    }

    /// The same with a callback, at once if no look-up is needed, otherwise on another thread.
    func caller(
        _ credential: String?, then: @escaping @Sendable (Result<Caller, any Error>) -> Void
    ) {
        guard let credential else { return then(.success(.nobody)) }
        let hash = SecretHash(of: credential)
        if let operatorHash = operatorHash.withLock(\.self), hash.isEqual(to: operatorHash) {
            return then(.success(.operator))
        }
        // Anything else is not a device's credential, and needs no look-up.
        guard credential.hasPrefix(Secret.devicePrefix) else { return then(.success(.stranger)) }
        let revocations = revocations
        if let found = remembered(hash) { return then(.success(device(found))) }
        lookup.rights(of: hash) { [self] result in
            then(
                result.map { rights in
                    guard let rights else { return .stranger }
                    remember(rights, hash, revocations)
                    return device(rights)
                })
        }
    }

    /// Adopts the hash in the storage. Any earlier credential is no longer valid.
    func adopt(operator hash: SecretHash) { operatorHash.withLock { $0 = hash } }

    var revocations: Int { removals.load(ordering: .acquiring) }

    /// How long a connection may remember a caller while nothing is revoked: far less than
    /// ``LastSeenBuffer/seenMilliseconds``, and not at all if other nodes may revoke.
    var connectionMilliseconds: Int64 { storage.isShared ? 0 : 10_000 }

    private func device(_ rights: DeviceRights) -> Caller {
        lastSeen.see(rights.reference)
        return .device(rights)
    }

    private func remembered(_ hash: SecretHash) -> DeviceRights? {
        guard let found = known.withLock({ $0.value(hash) }) else { return nil }
        guard storage.isShared else { return found.rights }
        return clock.uptime() - found.since < Self.sharedMilliseconds ? found.rights : nil
    }

    private func remember(_ rights: DeviceRights, _ hash: SecretHash, _ revocations: Int) {
        known.withLock { known in
            guard self.revocations == revocations else { return }
            let stores = rights.stores?.reduce(0) { $0 + 64 + $1.string.utf8.count } ?? 0
            known.set(hash, Known(rights: rights, since: clock.uptime()), bytes: 64 + stores)
        }
    }

    /// Call after the storage has erased the account, or revoked one of its devices.
    func invalidate(_ account: AccountID) { invalidate { $0.account == account } }

    /// Call if a revocation may have been missed.
    func invalidateAll() { invalidate { _ in true } }

    private func invalidate(_ isGone: (DeviceRights) -> Bool) {
        known.withLock { known in
            known.removeAll { isGone($0.rights) }
            removals.add(1, ordering: .releasing)
        }
    }
}
