// SPDX-License-Identifier: Apache-2.0

/// The border of a sealed account: what the app, the disk and the policies see is clear, and what is
/// sent and received is sealed.
///
/// The device seals with the newest key that it has. What it knows of the account's newest key is in
/// each store's file, see ``StoredMeta/generation``: a process that finds one there that it does not
/// have sends nothing. Only this device's own keys count: a server's word that there is a newer one
/// holds for a connection. That the account is sealed at all is kept however the device learns it, for
/// the account and before the file has it, see ``DeviceState/sealedAccounts``: no server can take it
/// back, and get clear values.
extension SyncEngine {
    /// The number of the key that this device seals with, which its requests name; 0 if it has none.
    package var generation: UInt32 { sealer?.generation ?? 0 }

    /// Whether the device has the account's newest key, or needs none.
    var hasKey: Bool { generation >= neededGeneration }

    private var neededGeneration: UInt32 {
        max(meta.generation, knownGeneration, hasHeardSealed ? 1 : 0)
    }

    /// Whether the device knows that the account is sealed.
    var isSealed: Bool { neededGeneration > 0 }

    /// Takes the keys of the account that is signed in, and what is known of it.
    mutating func take(_ keyring: Keyring?, isSealed: Bool) {
        knownGeneration = keyring?.current ?? (isSealed ? 1 : 0)
        sealer = settings.store.flatMap { keyring?.sealer(of: $0) }
        if knownGeneration > 0 { takeMark(knownGeneration) } else { unseal() }
    }

    /// A person has said that the values may be sent in clear. What waits, and what is agreed and may be
    /// offered again, is then sent so.
    private mutating func unseal() {
        guard meta.generation > 0 else { return }
        (meta.generation, meta.agreedGeneration) = (0, 0)
        unsaved.meta = true
        entries.isSealed = false
        for key in ownRecords { entries.update(key) { $0.pending?.generation = 0 } }
    }

    /// Remembers that the account is sealed with a key of that number.
    mutating func takeMark(_ generation: UInt32) {
        if generation > meta.generation {
            meta.generation = generation
            unsaved.meta = true
        }
        entries.isSealed = meta.generation > 0
    }

    /// Remembers that what is agreed with the server is sealed with the present key.
    mutating func agree() {
        guard meta.agreedGeneration != generation else { return }
        meta.agreedGeneration = generation
        unsaved.meta = true
    }

    /// Ends the connection of a device without the account's key, and says so.
    mutating func lock() {
        if link.stream != nil || link.polling != nil { link.close() }
        if meta.link.state != .locked { setLink(.locked, error: LinkStatus.lockedReason) }
        failRequests(LinkFailure(.sealed(generation: neededGeneration), LinkStatus.lockedReason))
    }

    // MARK: - Writes

    /// The stamp of a write whose time is final. Of a sealed one, the server must not be able to
    /// compute the digest from guesses.
    func sealed(_ stamp: Stamp) -> Stamp {
        guard let sealer else { return stamp }
        return Stamp(stamp.timestamp, stamp.device, digest: sealer.digest(stamp))
    }

    /// Gives waiting writes the digests of the present key that were made without one, or with one
    /// that others may have since, and their parts the names that they have in a sealed account. Only
    /// when everything is here that the server has, which says what these are. They are not sent before.
    ///
    /// What the server has and what waits have different names before, and are shown together. So an
    /// app is told of the difference that this makes and of what came as one.
    /// - Returns: The keys whose value changed for the app.
    @discardableResult
    mutating func renewWaiting() -> Set<Key> {
        guard generation > 0 else { return [] }
        var changed: Set<Key> = []
        let keys = waiting.filter { key in
            entries[key]?.pending.map {
                isOutdated($0) || key.isClearEntry || renamedRaises[key] != nil
            } ?? false
        }
        for key in keys.inOrder() {
            guard let write = entries[key]?.pending else { continue }
            var renewed = write
            if isOutdated(write) {
                renewed.record.stamp = sealed(write.record.stamp)
                renewed.generation = generation
            }
            let isChanged = entries.update(key) { entry in
                entry.pending = renewed
                entry.dropPendingIfBeaten()
            }
            if isChanged { changed.insert(key) }
            // Unless the server has it already. With the key, but before the sealed store was here, an
            // entry was cleared under the name that it had.
            let mayHaveOther =
                write.generation == 0 || key.isClearEntry || renamedRaises[key] != nil
            if mayHaveOther, entries[key]?.pending == renewed { rename(renewed) }
        }
        return changed.union(entries.refreshViews())
    }

    private func isOutdated(_ write: PendingWrite) -> Bool {
        write.provisional == nil && write.generation != generation
    }

    /// Writes a part under the name that it has in a sealed account, if that is another one.
    private mutating func rename(_ write: PendingWrite) {
        let key = write.record.key
        guard let part = key.part, let policy = part.policy else { return }
        if key.isClearEntry {
            renameEntry(ExactString(part.name), write)
        } else if policy.isExtremum, let value = write.record.content.value {
            if let removed = ComparableValue(removed: value) {
                let agreed = entries[key]?.confirmed?.content.value
                let isSeen =
                    agreed.flatMap { ComparableValue($0) }.map {
                        !policy.prefers($0, to: removed)
                    } ?? false
                move(write, to: isSeen ? [(part, .deleted)] : [])
            } else {
                let id = policies.names.next(policy)
                renamedRaises[key] = id
                move(write, to: [(id, write.record.content), (part, .deleted)])
            }
            // Another process has removed it, by the name that it knew.
        } else if let id = renamedRaises[key], write.record.content == .deleted,
            let raise = entries[key.whole.part(id)].flatMap({ $0.pending?.record ?? $0.confirmed }),
            raise.stamp.isEarlier(than: write.record.stamp)
        {
            move(write, to: [(part, .deleted), (id, .deleted)])
        }
    }

    /// What the server has of the entry has had a random name since the account was sealed.
    private mutating func renameEntry(_ inner: ExactString, _ write: PendingWrite) {
        let present = entries.mergeState(write.record.key.whole).all.filter {
            $0.id.isHiddenEntry && $0.entry?.key == inner
        }
        guard let value = write.record.content.value else {
            return move(write, to: present.map { ($0.id, .deleted) })
        }
        let id = present.last?.id ?? policies.names.nextHiddenEntry()
        move(write, to: [(id, .value(MergeState.hidden(inner, value)))])
    }

    /// Replaces a write by those of other parts, which belong to its transaction, unless they have
    /// later ones, or others of the same transaction. A deletion is only written of what the server
    /// has, or may be sent.
    private mutating func move(_ write: PendingWrite, to parts: [(PartID, Content)]) {
        let (old, stamp) = (write.record.key, write.record.stamp)
        entries.update(old) { $0.dropPending() }
        for (part, content) in parts {
            let key = old.whole.part(part)
            let entry = entries[key]
            if content == .deleted, entry?.confirmed?.content.value == nil,
                entry?.pending?.record.content.value == nil
            {
                continue
            }
            if let waiting = entry?.pending, !waiting.record.stamp.isEarlier(than: stamp) {
                continue
            }
            var moved = write
            moved.record = Record(key: key, content: content, stamp: stamp)
            if let confirmed = entry?.confirmed {
                moved.had = confirmed.stamp.withoutDigest
            } else if part.policy?.isExtremum ?? false {
                // It never replaces what its author saw.
                moved.had = nil
            }
            entries.update(key) { entry in
                entry.pending = moved
                entry.isAcknowledged = false
                entry.dropPendingIfBeaten()
            }
        }
    }

    // MARK: - Answers

    /// Opens what a server of a sealed account sent. What the account's key does not open stays as it
    /// came, see ``sifted(_:at:)``.
    /// - Throws: The reason the device takes nothing of it.
    func opened(_ changes: ChangeSet, at now: ClockReading) throws(LinkFailure) -> ChangeSet {
        guard let sealer else { return changes }
        try checkTime(changes.serverMilliseconds, at: now)
        do throws(SealingFault) {
            return try sealer.open(changes, within: intake.message)
        } catch { throw LinkFailure(error) }
    }

    /// The same for an answer to a push.
    func opened(_ answer: PushAnswer, at now: ClockReading) throws(LinkFailure) -> PushAnswer {
        guard let sealer else { return answer }
        try checkTime(answer.serverMilliseconds, at: now)
        do throws(SealingFault) {
            return try sealer.open(answer, within: intake.message)
        } catch { throw LinkFailure(error) }
    }

    /// The same for versions of the past. What the key does not open stays as it came.
    package func opened(_ page: HistoryPage) throws(LinkFailure) -> HistoryPage {
        guard let sealer else { return page }
        do throws(SealingFault) {
            return try sealer.open(page, within: IntakeLimits(nil).message)
        } catch { throw LinkFailure(error) }
    }

    /// The same for a store as it was.
    package func opened(_ snapshot: StoreSnapshot) throws(LinkFailure) -> StoreSnapshot {
        guard let sealer else { return snapshot }
        do throws(SealingFault) {
            return try sealer.open(snapshot, within: IntakeLimits(nil).message)
        } catch { throw LinkFailure(error) }
    }

    /// - Throws: If the server's time is too far ahead for a sealed account.
    func checkTime(_ milliseconds: Int64, at now: ClockReading) throws(LinkFailure) {
        guard meta.generation > 0, milliseconds > now.wall + Sealer.aheadMax else { return }
        throw LinkFailure(
            .unreachable,
            "the server's time is more than a day ahead of this device's, which a sealed account does "
                + "not follow: set this device's clock")
    }
}

extension Key {
    /// Whether it is an entry of a dictionary under a name that no sealed account has.
    fileprivate var isClearEntry: Bool {
        guard let part else { return false }
        return part.policy == .dictionary && !part.isHiddenEntry
    }
}

extension Stamp {
    /// Regardless of the digests, of which one may have been replaced already.
    fileprivate func isEarlier(than other: Stamp) -> Bool { withoutDigest < other.withoutDigest }
}

extension LinkFailure {
    package init(_ fault: SealingFault) {
        self.init(
            .unreachable,
            "the server sent what a sealed account does not have: \(fault.description)")
    }
}

extension Refusal {
    /// Not the server's: it says that it has something later, which the account's key does not open.
    static let unopened = Refusal(
        code: "unopened",
        detail: "the server has a later value, which the account's key does not open")
    /// Not the server's either: of the time of that, there is no proof.
    static let ahead = Refusal(
        code: "unopened", detail: "the server has a deletion that it dates in the future"
    )
}
