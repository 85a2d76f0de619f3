// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

extension UbiquityAdditions where Self: UbiquitousKeyValueStore {
    /// Adds values for keys that have none, like `UserDefaults.register(defaults:)`. Call it when the
    /// app starts, before values are read.
    ///
    /// A registered default is never stored or sent, so it wins over no device's value, and it is gone
    /// when the store is closed or the process ends. Until then:
    ///
    /// - All getters, ``UbiquityBatch``, typed keys and `dictionaryRepresentation` have it while the
    ///   key has no value. A typed key gives it precedence over the key's own default.
    /// - A stored value hides it, even one of another type, and one that equals it is stored all the
    ///   same. It is back when the key is removed, on this device or another.
    /// - ``UbiquitousKeyValueStore/hasValue(for:)`` is false, conflict policies and
    ///   ``increment(forKey:by:)`` do not count it, and it takes none of the store's room.
    ///
    /// Registering posts no notification and reports no change. Several calls add up; of a key that
    /// is registered twice, the last value counts. A value that is not a property list and an empty
    /// key are left out, which is reported as for
    /// ``UbiquitousKeyValueStore/set(_:forKey:)-(Any?,_)``. A subclass that never opens a store, such
    /// as a test double, has no registered defaults.
    /// <!-- Snippets/GettingStarted.swift: register -->
    /// ```swift
    /// store.register(defaults: ["theme": "light", "fontSize": 13])
    /// print("\(store.longLong(forKey: "fontSize")) points")  // 13, until a device sets another size
    /// ```
    public func register(defaults registrationDictionary: [String: Any]) {
        guard hasBacking else { return }
        var values: [Key: PropertyListValue] = [:]
        for (name, value) in registrationDictionary {
            do { values[try Key(name)] = try PropertyListValue(value) } catch {
                refuse(name, error)
            }
        }
        backing.register(values)
    }
}
