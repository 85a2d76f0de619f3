// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

extension UbiquitousKeyValueStore {
    /// The value of a key, or its default.
    ///
    /// A number, a Bool and a string are read from each other as ``longLong(forKey:)``,
    /// ``double(forKey:)``, ``bool(forKey:)`` and ``string(forKey:)`` do, except that a number that
    /// does not fit into the type is not cut. What is inside of a container must have its type; any
    /// number that is exact counts. What cannot be read gives the default, stays in the store, and
    /// is reported once for each key while the process runs.
    ///
    /// Setting nil removes the key, and so gives the default again. A value that has no form as
    /// a property list, or does not fit into the store, is refused as ``set(_:forKey:)-(Any?,_)``
    /// refuses; ``set(_:for:)`` throws instead. `store[.count] += 1` is a read and then a write:
    /// what another thread writes between the two is lost.
    ///
    /// A number, string, Bool, date or data costs little more than with the untyped getter; any
    /// other value takes time in proportion to its size, at each reading too.
    public subscript<Value>(key: UbiquityKey<Value>) -> Value {
        get {
            guard let stored = read(key.name) else { return key.defaultValue }
            do { return try TypedValue.decode(stored, as: Value.self) } catch {
                reportOnce(key.name, error)
                return key.defaultValue
            }
        }
        set {
            do { try put(newValue, key.name) } catch { refuse(key.name, error) }
        }
    }

    /// The value of a key. Nil if there is none; the default is not asked.
    ///
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/invalid`` if what is stored cannot be
    ///   read as `Value`.
    public func value<Value>(for key: UbiquityKey<Value>) throws -> Value? {
        guard let stored = read(key.name) else { return nil }
        do { return try TypedValue.decode(stored, as: Value.self) } catch {
            throw UbiquityError(unreadable: key.name, error)
        }
    }

    /// Stores a value; nil removes the key.
    ///
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/invalid`` if the value has no form as
    ///   a property list or the key's name cannot be one, and ``UbiquityError/Code/refused`` if the
    ///   write does not fit into the store. The old value stays. A subclass that overrides
    ///   ``set(_:forKey:)-(Any?,_)`` is given the value, and what it refuses is not thrown.
    public func set<Value>(_ value: Value, for key: UbiquityKey<Value>) throws {
        do { try put(value, key.name) } catch { throw UbiquityError(refused: key.name, error) }
    }

    /// True if something is stored, whether it can be read as the key's type or not.
    public func hasValue(for key: UbiquityKey<some Codable & Sendable>) -> Bool {
        isSubclass ? object(forKey: key.name) != nil : value(key.name) != nil
    }

    /// Removes a key, so that it reads as its default again. Nothing happens where there is none.
    public func remove(_ key: UbiquityKey<some Codable & Sendable>) {
        removeObject(forKey: key.name)
    }
}

extension UbiquitousKeyValueStore {
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

/// The names of the keys whose stored value was reported as unreadable: a view may read one many
/// times a second. Of the process and not of a store, because an app that has several stores seldom
/// means two things by one name. Asked only when a value could not be read.
private let reportedKeys = Mutex<Set<String>>([])

/// As many keys as a store has; an app that makes up names would fill the memory otherwise.
private let reportedKeysMax = 1_024

extension UbiquityError {
    /// What is stored under a key is of another type.
    init(unreadable key: String, _ error: UnreadableValue) {
        self.init(.invalid, "what is stored under the key \"\(key)\" cannot be read: \(error)")
    }
}
