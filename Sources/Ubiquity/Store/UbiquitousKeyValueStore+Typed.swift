// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

extension UbiquitousKeyValueStore {
    /// The value of a key, or its default.
    ///
    /// A number, a Bool and a string are read as each other where nothing has to be guessed: "5" is
    /// a number and "loud" is none, "yes" is a Bool, 2.7 as an integer is 2, and a number that does
    /// not fit into the type is not clamped. Values inside of a container must have their exact
    /// type; numbers match if they are exact. Any other value gives the key's default, stays in the
    /// store, and is reported once for each key while the process runs. ``value(for:)`` throws
    /// instead.
    ///
    /// Setting nil removes the key, which then gives the default again. A value that is not a
    /// property list, or does not fit into the store, is refused as by ``set(_:forKey:)-(Any?,_)``;
    /// ``set(_:for:)`` throws instead. `store[.count] += 1` is a read followed by a write: what
    /// another thread writes in between is lost.
    ///
    /// A number, string, Bool, date or data costs little more than with the untyped getter. Any
    /// other value takes time proportional to its size for each read.
    /// <!-- Snippets/Observing.swift: keys -->
    /// ```swift
    /// struct Game: Codable {
    ///     var level = 1
    ///     var player: String?
    /// }
    ///
    /// extension UbiquityKeys {
    ///     static let volume = UbiquityKey("volume", default: 0.8)
    ///     static let nickname = UbiquityKey<String?>("nickname")
    ///     static let level = UbiquityKey("level", default: 1, policy: .maximum)
    ///     static let game = UbiquityKey("game", default: Game())
    /// }
    ///
    /// store[.volume] = 0.5
    /// store[.game].level += 1
    /// store[.nickname] = nil
    /// ```
    public subscript<Value>(key: UbiquityKey<Value>) -> Value {
        get {
            declare(key)
            guard let stored = read(key.name) else { return key.defaultValue }
            do { return try TypedValue.decode(stored, as: Value.self) } catch {
                reportOnce(key.name, error)
                return key.defaultValue
            }
        }
        set {
            declare(key)
            do { try put(newValue, key.name) } catch { refuse(key.name, error) }
        }
    }

    /// The value of a key, strictly: nil, not the key's default, if there is none, and an error if
    /// it has another type.
    ///
    /// A number matches any type of number that represents it exactly.
    ///
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/invalid`` if the stored value is of
    ///   another type than `Value`. It stays in the store.
    public func value<Value>(for key: UbiquityKey<Value>) throws -> Value? {
        declare(key)
        guard let stored = read(key.name) else { return nil }
        do { return try TypedValue.decode(stored, as: Value.self, exactly: true) } catch {
            throw UbiquityError(unreadable: key.name, error)
        }
    }

    /// Stores a value; nil removes the key.
    ///
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/invalid`` if the value cannot be
    ///   stored as a property list or the key is invalid, and ``UbiquityError/Code/refused`` if the
    ///   write does not fit into the store. The old value stays. A subclass that overrides
    ///   ``set(_:forKey:)-(Any?,_)`` gets the value, and nothing is thrown if it refuses.
    public func set<Value>(_ value: Value, for key: UbiquityKey<Value>) throws {
        declare(key)
        do { try put(value, key.name) } catch { throw UbiquityError(refused: key.name, error) }
    }

    /// Whether a value is stored, readable as the key's type or not. A registered default is not.
    public func hasValue(for key: UbiquityKey<some Codable & Sendable>) -> Bool {
        guard isSubclass else { return value(key.name) != nil }
        guard object(forKey: key.name) != nil else { return false }
        return !hasBacking || registered(key.name) == nil || value(key.name) != nil
    }

    /// Removes a key, so that it reads as its default again. Does nothing if there is no value.
    public func remove(_ key: UbiquityKey<some Codable & Sendable>) {
        removeObject(forKey: key.name)
    }
}

extension UbiquitousKeyValueStore {
    /// Sets the key's policy at its first use. A test double that never opens a store has none.
    @inline(__always)
    func declare(_ key: UbiquityKey<some Codable & Sendable>) {
        if key.hasPolicy, hasBacking { backing.declare(key.policy, forKey: key.name) }
    }

    private func put(_ value: some Encodable, _ name: String) throws {
        let stored = try TypedValue.encode(value)
        if !isSubclass {
            try write([try Key(name): stored.map(Content.value) ?? .deleted])
        } else if let stored {
            set(stored.boxed as Any?, forKey: name)
        } else {
            removeObject(forKey: name)
        }
    }

    private func reportOnce(_ name: String, _ error: UnreadableValue) {
        let isNew = reportedKeys.withLock { $0.count < reportedKeysMax && $0.insert(name).inserted }
        if isNew { backing.report(UbiquityError(unreadable: name, error)) }
    }
}

/// The names of the keys whose stored value was reported as unreadable, because a view may read one
/// many times a second. They are kept per process, not per store, since an app with several stores
/// rarely uses a name for two things. Used only when a value could not be read.
private let reportedKeys = Mutex<Set<String>>([])

/// As many keys as a store can have. An app that invents names would fill the memory otherwise.
private let reportedKeysMax = 1_024

extension UbiquityError {
    /// The value stored under a key cannot be read as the requested type.
    init(unreadable key: String, _ error: UnreadableValue) {
        self.init(.invalid, "the value of the key \"\(key)\" cannot be read: \(error)")
    }
}
