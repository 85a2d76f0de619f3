// SPDX-License-Identifier: Apache-2.0

/// A cache in memory of what was used recently. Beyond its size, it evicts what was not used for
/// some time: of two generations, the older one is dropped when the younger one is full.
struct RecentTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Slot: Sendable {
        var value: Value
        var bytes: Int
    }

    private var young: [Key: Slot] = [:]
    private var old: [Key: Slot] = [:]
    private var youngBytes = 0
    /// Changes when anything is removed.
    private(set) var generation = 0
    /// The maximum size of both generations together.
    private let bytesMax: Int

    /// The size of a table's row besides its key's and value's own bytes.
    private static var rowBytes: Int { 2 * MemoryLayout<(Key, Slot)>.stride }

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// Finds a value, and counts that as its use.
    mutating func value(_ key: Key) -> Value? {
        if let slot = young[key] { return slot.value }
        guard let slot = old.removeValue(forKey: key) else { return nil }
        insert(key, slot)
        return slot.value
    }

    /// - Parameter bytes: The approximate size of what the key and the value refer to.
    mutating func set(_ key: Key, _ value: Value, bytes: Int) {
        insert(key, Slot(value: value, bytes: bytes + Self.rowBytes))
    }

    mutating func remove(_ key: Key) {
        if let slot = young.removeValue(forKey: key) { youngBytes -= slot.bytes }
        old[key] = nil
        generation += 1
    }

    mutating func removeAll() {
        (young, old, youngBytes) = ([:], [:], 0)
        generation += 1
    }

    mutating func removeAll(where isGone: (Value) -> Bool) {
        young = young.filter { !isGone($0.value.value) }
        old = old.filter { !isGone($0.value.value) }
        youngBytes = young.values.reduce(0) { $0 + $1.bytes }
        generation += 1
    }

    private mutating func insert(_ key: Key, _ slot: Slot) {
        if let replaced = young.updateValue(slot, forKey: key) { youngBytes -= replaced.bytes }
        youngBytes += slot.bytes
        guard youngBytes > bytesMax / 2 else { return }
        (old, young, youngBytes) = (young, [:], 0)
        generation += 1
    }
}
