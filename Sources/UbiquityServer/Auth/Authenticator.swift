// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// Who a credential belongs to.
///
/// State: `known`, what the storage said lately, guarded by its lock, so that a push costs no
/// look-up there. A revocation takes an entry out at once; what another process revokes is
/// noticed by ``Housekeeping``.
final class Authenticator: Sendable {
    private struct Known {
        var devices: [SecretHash: DeviceRights] = [:]
        /// Counts what was taken out: who asked the storage before that must not put it back.
        var forgettings = 0
    }

    private let known = Mutex(Known())
    private let storage: any ServerStorage
    private let threads: BlockingThreads
    private let operatorHash: SecretHash
    private let sightings: SightingLog

    /// Above, what is remembered begins anew.
    private static let rememberedMax = 65_536

    init(
        storage: any ServerStorage, threads: BlockingThreads, operatorHash: SecretHash,
        sightings: SightingLog
    ) {
        self.storage = storage
        self.threads = threads
        self.operatorHash = operatorHash
        self.sightings = sightings
    }

    /// - Parameter credential: Nil: none was given.
    /// - Throws: ``StorageError``, ``Busy``.
    func caller(_ credential: String?) async throws -> Caller {
        guard let credential else { return .nobody }
        let hash = SecretHash(of: credential)
        if hash.isEqual(to: operatorHash) { return .operator }
        // Anything else is no device's, and not worth asking the storage for.
        guard credential.hasPrefix(Secret.devicePrefix), let rights = try await find(hash) else {
            return .stranger
        }
        sightings.see(rights.name)
        return .device(rights)
    }

    private func find(_ hash: SecretHash) async throws -> DeviceRights? {
        let (found, forgettings) = known.withLock { ($0.devices[hash], $0.forgettings) }
        if let found { return found }
        let storage = storage
        let rights = try await threads.run { try storage.device(credential: hash)?.rights }
        guard let rights else { return nil }
        known.withLock { known in
            guard known.forgettings == forgettings else { return }
            if known.devices.count >= Self.rememberedMax { known.devices.removeAll() }
            known.devices[hash] = rights
        }
        return rights
    }

    /// To be called after the storage knows of a revocation.
    func forget(_ device: DeviceName) { forget { $0.name == device } }

    /// To be called after the storage has erased the account.
    func forget(_ account: AccountID) { forget { $0.account == account } }

    private func forget(_ isGone: (DeviceRights) -> Bool) {
        known.withLock { known in
            known.devices = known.devices.filter { !isGone($0.value) }
            known.forgettings += 1
        }
    }

    /// The storage is asked anew about everyone.
    func forgetAll() {
        known.withLock { $0 = Known(forgettings: $0.forgettings + 1) }
    }
}
