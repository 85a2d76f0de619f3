// SPDX-License-Identifier: Apache-2.0

public import Foundation
package import UbiquityCore

extension UbiquityAdditions where Self: UbiquitousKeyValueStore {
    /// The versions of a key, the newest first: its values, writes that lost to later ones, and
    /// those of this device that wait or were refused.
    ///
    /// The history is on the server, within the limits that its operator has set. Cost: one request
    /// or a few; under a conflict policy, all that the server has of the key.
    /// <!-- Snippets/GoingBackInTime.swift: history -->
    /// ```swift
    /// func printHistory(of key: String, in store: UbiquitousKeyValueStore) async throws {
    ///     for version in try await store.history(forKey: key) {
    ///         let device = version.author.name ?? version.author.id
    ///         switch version.outcome {
    ///         case .current: print("\(device) made it \(version.value ?? "nothing")")
    ///         case .replaced(let author, let date):
    ///             print(
    ///                 "before \(date), when \(author.name ?? author.id) changed it: \(version.value ?? "nothing")"
    ///             )
    ///         case .lost: print("\(device)'s came too late: \(version.value ?? "nothing")")
    ///         case .waiting: print("not sent yet: \(version.value ?? "nothing")")
    ///         case .refused(let reason): print("not taken, because \(reason)")
    ///         case .gap: print("from \(version.date) on, some values are not known any more")
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - aKey: A key; it need not have a value any more.
    ///   - max: The most versions to return.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/unreachable`` or
    ///   ``UbiquityError/Code/notSignedIn`` without the server,
    ///   ``UbiquityError/Code/notConfigured``, ``UbiquityError/Code/refused`` if the server keeps
    ///   no history, ``UbiquityError/Code/invalid`` for an empty key,
    ///   ``UbiquityError/Code/storage``, and `CancellationError`.
    public func history(
        forKey aKey: String, newest max: Int = 100
    ) async throws -> [UbiquityVersion] {
        let versions = try await versions(of: validKey(aKey), newest: max)
        let devices = await devices()
        return versions.map { UbiquityVersion($0, devices) }
    }

    /// The versions of a key that this device knows without its server: the write that waits, the
    /// value last agreed with the server, and the refused writes, newest first.
    /// <!-- Snippets/GoingBackInTime.swift: offline -->
    /// ```swift
    /// func lastKnown(_ key: String, in store: UbiquitousKeyValueStore) async throws -> [UbiquityVersion] {
    ///     do { return try await store.history(forKey: key) } catch let error as UbiquityError
    ///         where error.code == .unreachable
    ///     {
    ///         return try store.localHistory(forKey: key)
    ///     }
    /// }
    /// ```
    ///
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/invalid`` for an empty key, and
    ///   ``UbiquityError/Code/storage``.
    public func localHistory(forKey aKey: String) throws -> [UbiquityVersion] {
        let devices = localDevices
        return try localVersions(of: validKey(aKey)).map { UbiquityVersion($0, devices) }
    }

    /// The store's values as they were on the server at a time, of all keys together.
    ///
    /// - Throws: As ``history(forKey:newest:)``, and ``UbiquityError/Code/refused`` for a time
    ///   before the server's history begins.
    public func values(at date: Date) async throws -> UbiquitySnapshot {
        let snapshot = try await snapshot(at: .milliseconds(date.wholeMilliseconds))
        return UbiquitySnapshot(
            contents: values(of: snapshot),
            forgottenKeys: snapshot.forgottenKeys.map(\.string).sorted())
    }

    /// Gives a key the value of a version: an ordinary write, which syncs and can be reverted too.
    ///
    /// Under a conflict policy it writes the difference. A counter goes back to what it was, and
    /// what others count meanwhile stays. A maximum or minimum is replaced as far as this device
    /// has seen it.
    /// <!-- Snippets/GoingBackInTime.swift: undo -->
    /// ```swift
    /// func undo(_ key: String, in store: UbiquitousKeyValueStore) async throws {
    ///     let versions = try await store.history(forKey: key)
    ///     let earlier = versions.first { version in
    ///         if case .replaced = version.outcome { true } else { false }
    ///     }
    ///     if let earlier { try store.revert(key, to: earlier) }
    /// }
    /// ```
    ///
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/refused`` if the value does not fit
    ///   into the store, or is not known any more, and
    ///   ``UbiquityError/Code/invalid`` for an empty key.
    public func revert(_ aKey: String, to version: UbiquityVersion) throws {
        let key = try validKey(aKey)
        guard version.outcome != .gap else {
            throw UbiquityError(.refused, "what \"\(aKey)\" was then is not known any more")
        }
        try revert(to: [key: version.content.map(Content.value) ?? .deleted])
    }

    /// Gives all keys the values that they had, as one transaction; as several if that would be more
    /// than can be sent at once. Keys that had none are removed.
    ///
    /// It compares with the store as it is on this device, and writes the keys that differ, each
    /// as ``revert(_:to:)`` does. ``UbiquitySnapshot/forgottenKeys`` stay as they are.
    /// <!-- Snippets/GoingBackInTime.swift: rewind -->
    /// ```swift
    /// func goBack(by hours: Double, in store: UbiquitousKeyValueStore) async throws {
    ///     let then = try await store.values(at: Date(timeIntervalSinceNow: -hours * 3_600))
    ///     print("It would have \(then.values.count) keys.")
    ///     try store.revertAll(to: then)
    /// }
    /// ```
    ///
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/refused`` if the values do not fit
    ///   into the store.
    public func revertAll(to snapshot: UbiquitySnapshot) throws {
        let forgotten = Set(snapshot.forgottenKeys)
        let gone = values.keys.filter {
            snapshot.contents[$0] == nil && !forgotten.contains($0.string)
        }
        var contents = snapshot.contents.mapValues(Content.value)
        for key in gone { contents[key] = .deleted }
        try revert(to: contents)
    }

    /// Gives all keys the values that they had at a time: ``revertAll(to:)-(UbiquitySnapshot)``
    /// after a sync, so that it takes back what other devices have written since, too.
    ///
    /// - Throws: As ``values(at:)``, ``UbiquityAdditions/synchronizeNow()`` and
    ///   ``revertAll(to:)-(UbiquitySnapshot)``. Nothing is written then.
    public func revertAll(to date: Date) async throws {
        try await synchronizeNow()
        try revertAll(to: await values(at: date))
    }
}

extension UbiquitousKeyValueStore {
    /// See ``UbiquityAdditions/history(forKey:newest:)``.
    package func versions(of key: Key, newest max: Int) async throws -> [KeyVersion] {
        let records = try await recordVersions(of: key, newest: max)
        let resolver = backing.driver.read { $0.resolver(of: key) }
        return KeyHistory(of: key, from: records).versions(newest: max, resolver)
            .adding(own: try localVersions(of: key), newest: max)
    }

    /// The versions of a key that this device knows without its server.
    package func localVersions(of key: Key) throws -> [KeyVersion] {
        let refused = try storageErrors { try backing.driver.refusedWrites() }
            .filter { $0.record.key.name == key.name }
            .compactMap { KeyVersion($0.record, .refused($0.refusal)) }
        // On a copy: the app's own rule must not be called with the lock held.
        return backing.driver.read { copy $0 }.ownVersions(of: key) + refused
    }

    /// The versions of a key and its parts, or of the newest of all keys, as the server has them.
    package func recordVersions(of key: Key?, newest max: Int) async throws -> [RecordVersion] {
        var reading = HistoryReading(of: key, newest: max)
        var place: String?
        repeat {
            let from = place
            let sealed: HistoryPage = try await ask { link, answered in
                link.history(
                    of: key, from: from, max: min(max, HistoryReading.pageMax), answered: answered)
            }
            let page: HistoryPage
            do throws(LinkFailure) {
                page = try backing.driver.read { copy $0 }.opened(sealed)
            } catch { throw UbiquityError(error) }
            do { place = try reading.take(page) } catch {
                throw UbiquityError(.refused, "\(error)")
            }
        } while place != nil
        return reading.versions
    }

    package func snapshot(at time: HistoryRule.Time) async throws -> StoreSnapshot {
        let sealed: StoreSnapshot = try await ask { $0.snapshot(at: time, answered: $1) }
        do throws(LinkFailure) {
            return try backing.driver.read { copy $0 }.opened(sealed)
        } catch { throw UbiquityError(error) }
    }

    /// The values that the app would see of a snapshot.
    package func values(of snapshot: StoreSnapshot) -> [Key: PropertyListValue] {
        backing.driver.read { copy $0 }.values(of: snapshot.records)
            .filter { !snapshot.forgottenKeys.contains($0.key) }
    }

    /// The account's devices; without the names of others if the server does not tell them.
    package func devices() async -> AccountDevices {
        var devices = localDevices
        let names: [DeviceID: String]? = try? await ask { $0.deviceNames(answered: $1) }
        devices.names.merge(names ?? [:]) { $1 }
        return devices
    }

    /// This device alone.
    package var localDevices: AccountDevices {
        guard let account = backing.driver.signedIn, let own = DeviceID(account.device) else {
            return AccountDevices(own: nil, names: [:])
        }
        return AccountDevices(own: own, names: [own: account.deviceName])
    }

    /// See ``SyncEngine/revert(to:at:)``.
    package func revert(to contents: [Key: Content]) throws {
        do {
            try backing.write { engine, now throws(LimitViolation) in
                try engine.writeInParts(contents, reverts: true, at: now)
            }
        } catch { throw UbiquityError(refused: contents.keys, error) }
    }

    private func ask<Answer: Sendable>(
        _ begin: @escaping StoreDriver.Request<Answer>
    ) async throws -> Answer {
        try checkIdentifier()
        do { return try await backing.driver.ask(begin) } catch let error as UbiquityError
            where error.code == .unreachable || error.code == .notSignedIn
        {
            throw UbiquityError(error.code, "the history is on the server, and \(error)")
        }
    }
}

extension Date {
    /// Since 1970, within what any server counts.
    fileprivate var wholeMilliseconds: Int64 {
        Int64(min(max(0, timeIntervalSince1970), 1e11) * 1_000)
    }
}
