// SPDX-License-Identifier: Apache-2.0

/// What a device does next to have its account sealed with the newest key, and every store with it.
///
/// It follows from what is on the disk and on the server alone, so any device with the key can finish
/// what another one began, and an interruption at any place does no harm. A new key is a *proposal*
/// until the server has taken its mark: of two devices that make one at once, one loses, and must not
/// have sealed anything with its own by then.
///
/// It stays one until every store is sealed with it. A device without a proposal has only the server's
/// word that a store is not sealed, and asks a person: a server could have guesses sealed.
package enum SealingStep: Hashable, Sendable {
    /// Make a key for the first time.
    case propose
    /// Send the proposal's mark, with a recovery key that was shown and typed back.
    case mark
    /// Read this store, seal all of it, and replace it.
    case seal(StoreIdentifier)
    case done
    /// The account has a key that this device does not have.
    case getKey
    /// The server has an older mark than this device, or none although the device knows that the
    /// account is sealed: it was restored, the sealing was ended, or the server lies. Nothing must be
    /// sent, unless a person says that it was restored: then it gets this device's mark back.
    case restored
}

extension SealingSession {
    /// Takes the mark that the server has, which it cannot take back. A proposal becomes the account's key
    /// if it is the server's, and ends if another one is, or once every store is sealed with it.
    /// - Parameters:
    ///   - generation: That of the server's mark; 0 if the account is not sealed.
    ///   - check: That of the server's mark.
    ///   - unsealed: The stores that the server says are not sealed with this generation yet.
    package mutating func mark(
        generation: UInt32, check: Bytes32?, unsealed: [StoreIdentifier]
    ) -> SealingStep {
        if generation == 0, keyring == nil, isSealed { return .restored }
        if generation > 0 { isSealed = true }
        if let proposal {
            if generation > 0, proposal.current == generation, proposal.check == check {
                // This device has made it from its keys, so it only lacks what has come since.
                do { try join(proposal) } catch { keyring = proposal }
                if unsealed.isEmpty { self.proposal = nil }
            } else if proposal.current > 0, proposal.previous ?? 0 == generation,
                isNewest(generation, check)
            {
                // With two keys in between, nothing would open it.
                return (generation == 0 ? nil : unsealed.first).map { .seal($0) } ?? .mark
            } else {
                self.proposal = nil
            }
        }
        guard let current = keyring?.current else { return generation == 0 ? .propose : .getKey }
        if current > generation { return .restored }
        guard isNewest(generation, check) else { return .getKey }
        return unsealed.first.map { .seal($0) } ?? .done
    }

    /// Whether the mark is that of the newest key of this device. A confined one cannot tell whose it
    /// is.
    private func isNewest(_ generation: UInt32, _ check: Bytes32?) -> Bool {
        guard let keyring else { return generation == 0 }
        return keyring.current == generation && (keyring.check == nil || keyring.check == check)
    }

    /// Seals a whole store with the account's key, or with the proposal before its mark is sent, so that
    /// nothing is in the way afterwards: see
    /// ``Sealer/sealWhole(_:agreed:by:latest:run:isRestored:)``.
    /// - Parameters:
    ///   - generation: That of the key.
    ///   - now: The time by this device's clock, in milliseconds since 1970.
    /// - Returns: Nil if this device has no such key of the store.
    /// - Throws: ``SealingFault``.
    package func store(
        _ store: StoreIdentifier, _ found: ChangeSet, agreed: [Key: Record],
        generation: UInt32, by device: DeviceID, at now: Int64, run: UInt64, isRestored: Bool
    ) throws(SealingFault) -> SealedWhole? {
        let newest = proposal?.current == generation ? proposal : keyring
        guard let newest, newest.current == generation, let sealer = newest.sealer(of: store) else {
            return nil
        }
        return try sealer.sealWhole(
            found, agreed: agreed, by: device, latest: now + Sealer.aheadMax, run: run,
            isRestored: isRestored)
    }
}

// MARK: - The history, which sealing a store erases

/// What came last comes first.
extension [RecordVersion] {
    /// The newest version of each key that opened, of those that were the store's.
    package var lastOpened: [Key: Record] {
        var opened: [Key: Record] = [:]
        for version in self where version.wasStored && !version.record.content.isSealed {
            if opened[version.record.key] == nil { opened[version.record.key] = version.record }
        }
        return opened
    }

    /// The last version of each key before devices that are not among these replaced it, if one of them
    /// has written the newest, and that opened. Its ``RecordVersion/ended`` is when that began.
    /// - Parameter devices: The devices that are signed in.
    package func replaced(byOthersThan devices: Set<DeviceID>) -> [RecordVersion] {
        var replacing: Set<Key> = []
        var seen: Set<Key> = []
        var replaced: [RecordVersion] = []
        for version in self where version.wasStored {
            let record = version.record
            let isOther =
                record.stamp.device != .unassigned && !devices.contains(record.stamp.device)
            if seen.insert(record.key).inserted {
                guard isOther, !record.content.isSealed, !record.isOfServer else { continue }
                replacing.insert(record.key)
            } else if !isOther, replacing.remove(record.key) != nil {
                replaced.append(version)
            }
        }
        return replaced
    }
}

extension RecordVersion {
    /// Whether it was ever the newest of its key.
    fileprivate var wasStored: Bool { if case .lost = outcome { false } else { true } }
}
