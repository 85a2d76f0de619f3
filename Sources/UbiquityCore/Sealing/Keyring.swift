// SPDX-License-Identifier: Apache-2.0

/// The keys of a sealed account, as a device has them: one for each generation, of which the greatest
/// seals what is written.
package struct Keyring: Hashable, Sendable {
    /// The secret from which the keys of a generation are derived.
    package enum Root: Hashable, Sendable {
        /// The account's key.
        case account(Bytes32)
        /// Of a device that is confined to these stores: their keys, and not the account's.
        case stores([StoreIdentifier: Bytes32])
    }

    /// By the number of the generation, from 1.
    package var roots: [UInt32: Root]

    package init(_ roots: [UInt32: Root]) { self.roots = roots }

    /// The generation that seals what is written; 0 if there is none.
    package var current: UInt32 { roots.keys.max() ?? 0 }

    /// The generation before; nil if there is none.
    package var previous: UInt32? { roots.keys.filter { $0 < current }.max() }

    /// - Returns: Nil if the device does not have the store's key of the current generation.
    package func sealer(of store: StoreIdentifier) -> Sealer? {
        var keys: [UInt32: StoreKeys] = [:]
        for generation in roots.keys {
            keys[generation] = key(of: store, generation).map(StoreKeys.init)
        }
        return Sealer(generation: current, keys: keys)
    }

    /// What a device shows a server to prove that it has the account's key of a generation, see
    /// ``AccountSealing/check``.
    /// - Returns: Nil without that key, which a confined device never has.
    package func proof(of generation: UInt32) -> Bytes32? {
        guard case .account(let key)? = roots[generation] else { return nil }
        var info = SealingFields("ubiquity proof 1")
        info.add(UInt64(generation))
        return HKDF.derive(from: key.bytes, info: info.bytes)[0]
    }

    /// The ``AccountSealing/check`` of the current generation; nil without the account's key.
    package var check: Bytes32? { proof(of: current).map { SHA256.hash($0.bytes) } }

    /// These keys and another generation, which seals from then on. Of too many generations, the
    /// newest ``generationsMax`` stay.
    ///
    /// The first one's number is the minute since 2020, times 16: after a reset, or at a server that was
    /// set back, a new first key does not have the number of an old one. Each of the others is one more.
    /// The numbers last until the year 2530.
    /// - Parameters:
    ///   - key: 32 random bytes.
    ///   - seconds: The present time, since 1970.
    /// - Returns: Nil for a confined device, which cannot make the account's key.
    package func adding(_ key: Bytes32, at seconds: Int64) -> Keyring? {
        guard current < UInt32.max else { return nil }
        if case .stores? = roots[current] { return nil }
        var roots = roots
        roots[current == 0 ? Self.firstGeneration(at: seconds) : current + 1] = .account(key)
        return Keyring(roots).newest(Self.generationsMax)
    }

    /// The number of a first key that is made at a time, in seconds since 1970.
    static func firstGeneration(at seconds: Int64) -> UInt32 {
        max(1, UInt32(clamping: (seconds - secondsMin) / 60 * 16))
    }

    /// 2020 in UTC, since 1970.
    private static let secondsMin: Int64 = 1_577_836_800

    /// The newest generations.
    func newest(_ count: Int) -> Keyring {
        let generations = roots.keys.sorted { $0 > $1 }.prefix(count)
        var newest: [UInt32: Root] = [:]
        for generation in generations { newest[generation] = roots[generation] }
        return Keyring(newest)
    }

    // MARK: - From outside

    /// Whether the current generation is of no store.
    var isOfNoStore: Bool {
        if case .stores(let keys)? = roots[current] { keys.isEmpty } else { false }
    }

    /// Checks that these are the keys that an account is sealed with, according to its server's mark. A
    /// confined device can compare only the generation.
    package func check(generation: UInt32, check: Bytes32?) throws(KeyringRefusal) {
        guard current >= generation else { throw .older }
        guard current == generation, self.check == nil || self.check == check else { throw .other }
    }

    /// All keys of both. Keys from outside never replace what a device has, but join it: they may come
    /// from a device that has fewer, or from nobody who knows the account.
    /// - Returns: At most the newest ``generationsMax``. The account's key is kept rather than keys of
    ///   stores, which are united.
    /// - Throws: ``KeyringRefusal/unrelated`` unless both have the current generation of the older one
    ///   in common, or if they have different keys of a generation; also for more than ``storesMax``.
    package func joined(with other: Keyring) throws(KeyringRefusal) -> Keyring {
        if roots.isEmpty { return other }
        if other.roots.isEmpty { return self }
        let common = min(current, other.current)
        guard roots[common] != nil, other.roots[common] != nil else { throw .unrelated }
        var joined = roots
        for (generation, root) in other.roots {
            guard let mine = roots[generation] else {
                joined[generation] = root
                continue
            }
            joined[generation] = try Self.joined(
                mine, root, generation, needsCommon: generation == common)
        }
        // The older one's current generation is among them: it has none that is newer.
        return Keyring(joined).newest(Self.generationsMax)
    }

    /// - Parameter needsCommon: Whether keys of stores must have one in common.
    private static func joined(
        _ a: Root, _ b: Root, _ generation: UInt32, needsCommon: Bool
    ) throws(KeyringRefusal) -> Root {
        switch (a, b) {
        case (.account, .account):
            guard a == b else { throw .unrelated }
            return a
        case (.stores, .account):
            return try joined(b, a, generation, needsCommon: needsCommon)
        case (.account, .stores(let keys)):
            let account = Keyring([generation: a])
            guard keys.allSatisfy({ account.key(of: $0.key, generation) == $0.value }),
                !needsCommon || !keys.isEmpty
            else { throw .unrelated }
            return a
        case (.stores(let mine), .stores(let theirs)):
            let shared = mine.filter { theirs[$0.key] != nil }
            guard shared.allSatisfy({ theirs[$0.key] == $0.value }),
                !needsCommon || !shared.isEmpty
            else { throw .unrelated }
            var all = theirs
            for (store, key) in mine { all[store] = key }
            guard all.count <= storesMax else { throw .unrelated }
            return .stores(all)
        }
    }

    /// The keys for a device that is confined to these stores.
    package func confined(to stores: Set<StoreIdentifier>) -> Keyring {
        var confined: [UInt32: Root] = [:]
        for generation in roots.keys {
            var keys: [StoreIdentifier: Bytes32] = [:]
            for store in stores { keys[store] = key(of: store, generation) }
            confined[generation] = .stores(keys)
        }
        return Keyring(confined)
    }

    /// Whether the present key of a store is among them.
    func isOf(_ store: StoreIdentifier) -> Bool { key(of: store, current) != nil }

    private func key(of store: StoreIdentifier, _ generation: UInt32) -> Bytes32? {
        switch roots[generation] {
        case nil: return nil
        case .stores(let keys)?: return keys[store]
        case .account(let key)?:
            var info = SealingFields("ubiquity store 1")
            info.add(UInt64(generation))
            info.add(store.string.utf8)
            return HKDF.derive(from: key.bytes, info: info.bytes)[0]
        }
    }
}

/// The reason that keys from outside are not taken.
package enum KeyringRefusal: Error, Hashable, Sendable {
    /// They are from before the account's present key.
    case older
    /// They are not the ones that the account is sealed with, according to its server.
    case other
    /// They do not go on from the keys that the device has.
    case unrelated
}

extension KeyringRefusal: CustomStringConvertible {
    package var description: String {
        switch self {
        case .older:
            "these keys are from before the account's present key; use a device that has the newest, or "
                + "the newest recovery key"
        case .other: "these keys are not the ones that the account is sealed with on this server"
        case .unrelated:
            "these keys do not go on from the ones that this device has of the account, so they were "
                + "not taken: use another of your own devices. If the account was reset, save what you "
                + "need from this device, sign it out and wipe it, and sign in again"
        }
    }
}

/// Fields one after the other, each with its length before it, so that no two lists of fields have
/// the same bytes.
struct SealingFields {
    private(set) var bytes: [UInt8] = []

    /// - Parameter word: What the fields are for, and the version of their form.
    init(_ word: String) { add(word.utf8) }

    mutating func add(_ field: some Collection<UInt8>) {
        bytes.append(bigEndian: UInt32(truncatingIfNeeded: field.count))
        bytes += field
    }

    mutating func add(_ number: UInt64) {
        bytes.append(bigEndian: UInt32(8))
        bytes.append(bigEndian: number)
    }
}

/// The keys of one store and generation, each for one purpose.
struct StoreKeys: Sendable {
    let boxes: SealedBytes
    /// For the digests of transactions.
    let digest: HMAC
    /// For the tags of counts.
    let count: HMAC

    init(_ key: Bytes32) {
        let keys = HKDF.derive(
            from: key.bytes, info: SealingFields("ubiquity store keys 1").bytes, blocks: 4)
        boxes = SealedBytes(mac: keys[0], encryption: keys[1])
        (digest, count) = (HMAC(key: keys[2].bytes), HMAC(key: keys[3].bytes))
    }
}
