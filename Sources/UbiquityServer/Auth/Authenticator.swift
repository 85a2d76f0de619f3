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
        var devices: [SecretHash: DeviceName] = [:]
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
    /// - Throws: ``Problem``, ``StorageError``, ``Busy``.
    func device(_ credential: String?) async throws -> DeviceName {
        guard let credential else { throw Problem.credentialMissing }
        let hash = SecretHash(of: credential)
        guard hash != operatorHash else { throw Problem.notForOperator }
        let device = try await find(hash)
        sightings.see(device)
        return device
    }

    /// - Throws: ``Problem``, ``StorageError``, ``Busy``.
    func requireOperator(_ credential: String?) async throws {
        guard let credential else { throw Problem.credentialMissing }
        let hash = SecretHash(of: credential)
        guard hash != operatorHash else { return }
        _ = try await find(hash)
        throw Problem.onlyForOperator
    }

    private func find(_ hash: SecretHash) async throws -> DeviceName {
        let (found, forgettings) = known.withLock { ($0.devices[hash], $0.forgettings) }
        if let found { return found }
        let storage = storage
        guard let device = try await threads.run({ try storage.device(credential: hash) }) else {
            throw Problem.credentialInvalid
        }
        known.withLock { known in
            guard known.forgettings == forgettings else { return }
            if known.devices.count >= Self.rememberedMax { known.devices.removeAll() }
            known.devices[hash] = device.name
        }
        return device.name
    }

    /// To be called after the storage knows of a revocation.
    func forget(_ device: DeviceName) {
        known.withLock { known in
            known.devices = known.devices.filter { $0.value != device }
            known.forgettings += 1
        }
    }

    /// The storage is asked anew about everyone.
    func forgetAll() {
        known.withLock { $0 = Known(forgettings: $0.forgettings + 1) }
    }
}
