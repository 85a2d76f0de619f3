// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

extension UbiquitousKeyValueStore {
    /// The current value of a key, or its default, and each new value when it changes, wherever the
    /// change came from.
    ///
    /// A slow reader only gets the newest value. The sequence supports one reader, and ends when
    /// the reading task is cancelled.
    /// <!-- Snippets/Observing.swift: values -->
    /// ```swift
    /// func followVolume() async {
    ///     for await volume in store.values(for: .volume) {
    ///         print("the volume is \(volume)")
    ///     }
    /// }
    /// ```
    public func values<Value>(for key: UbiquityKey<Value>) -> UbiquityValues<Value> {
        UbiquityValues(store: self, key: key, changes: changes)
    }
}

/// The values of one key over time, see ``UbiquitousKeyValueStore/values(for:)``.
public struct UbiquityValues<Value: Codable & Sendable>: AsyncSequence, Sendable {
    fileprivate let store: UbiquitousKeyValueStore
    fileprivate let key: UbiquityKey<Value>
    fileprivate let changes: UbiquityChanges

    /// Makes the iterator for the sequence's only reader.
    public func makeAsyncIterator() -> Iterator {
        Iterator(store: store, key: key, changes: changes.makeAsyncIterator())
    }

    /// Returns the current value first.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let store: UbiquitousKeyValueStore
        fileprivate let key: UbiquityKey<Value>
        fileprivate var changes: UbiquityChanges.Iterator
        /// The stored value that the reader has seen; nil before the first.
        fileprivate var shown: PropertyListValue??

        /// The next value; nil at the end.
        public mutating func next() async -> Value? { await next(isolation: #isolation) }

        /// The next value; nil at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Value? {
            while shown != nil {
                guard let change = await changes.next(isolation: actor) else { return nil }
                if change.keys.contains(key.name), store.read(key.name) != shown { break }
            }
            shown = .some(store.read(key.name))
            return store[key]
        }
    }
}
