// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// Several writes that apply all or not at all, see ``UbiquitousKeyValueStore/performBatch(_:)``.
///
/// It belongs to the closure that receives it.
public struct UbiquityBatch: ~Copyable {
    private let store: UbiquitousKeyValueStore
    var changes: [Key: Content] = [:]

    init(_ store: UbiquitousKeyValueStore) { self.store = store }

    /// The value as it will be, boxed as by ``UbiquitousKeyValueStore/object(forKey:)``.
    public func object(forKey aKey: String) -> Any? {
        (value(aKey) ?? store.registered(aKey))?.boxed
    }

    /// Adds a write of a property-list value; nil removes the key.
    ///
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/invalid`` for a value that is not a
    ///   property list and for an empty key. If the error is not caught, the batch ends and nothing
    ///   is written.
    public mutating func set(_ anObject: Any?, forKey aKey: String) throws {
        do {
            changes[try Key(aKey)] =
                try anObject.map { .value(try PropertyListValue($0)) } ?? .deleted
        } catch { throw UbiquityError(refused: aKey, error) }
    }

    /// Adds a write of a value; nil removes the key.
    ///
    /// - Throws: As ``set(_:forKey:)``.
    public mutating func set<Value>(_ value: Value, for key: UbiquityKey<Value>) throws {
        store.declare(key)
        do {
            changes[try Key(key.name)] =
                try TypedValue.encode(value).map(Content.value) ?? .deleted
        } catch { throw UbiquityError(refused: key.name, error) }
    }

    /// Removes a key.
    public mutating func removeObject(forKey aKey: String) {
        if let key = try? Key(aKey) { changes[key] = .deleted }
    }

    /// The value as it will be.
    func value(_ name: String) -> PropertyListValue? {
        guard let key = try? Key(name) else { return nil }
        if let change = changes[key] { return change.value }
        return store.value(name)
    }
}

extension UbiquityAdditions where Self: UbiquitousKeyValueStore {
    /// Writes several keys as one transaction: all or nothing in memory, on disk, on the server and
    /// in what other devices observe.
    ///
    /// The batch is written when the closure returns. Until then only the batch itself sees it.
    /// Writes of others to other keys are not affected.
    /// <!-- Snippets/Observing.swift: batch -->
    /// ```swift
    /// func swapColors() throws {
    ///     try store.performBatch { batch in
    ///         let front = batch.object(forKey: "front")
    ///         try batch.set(batch.object(forKey: "back"), forKey: "front")
    ///         try batch.set(front, forKey: "back")
    ///     }
    /// }
    /// ```
    ///
    /// - Throws: The closure's error, or ``UbiquityError`` with ``UbiquityError/Code/invalid`` for
    ///   a key that is too long and ``UbiquityError/Code/refused`` if the transaction does not fit
    ///   into the store, or is more than can be sent at once. Nothing is written then.
    public func performBatch<Result>(
        _ body: (inout UbiquityBatch) throws -> Result
    ) throws -> Result {
        var batch = UbiquityBatch(self)
        let result = try body(&batch)
        do { try write(batch.changes) } catch {
            throw UbiquityError(refused: batch.changes.keys, error)
        }
        return result
    }

    /// Removes every key, as one transaction; as several if that would be more than can be sent at
    /// once.
    public func removeAll() {
        // A deletion always fits.
        try? backing.write { engine, now throws(LimitViolation) in
            try engine.writeInParts(engine.values.mapValues { _ in .deleted }, at: now)
        }
    }
}
