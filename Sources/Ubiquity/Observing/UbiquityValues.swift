// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

extension UbiquitousKeyValueStore {
    /// The value of a key, or its default: now, and whenever it is another one, wherever that came
    /// from.
    ///
    /// A slow reader gets the newest value only. The sequence is for one reader, and ends when the
    /// reading task is cancelled.
    public func values<Value>(for key: UbiquityKey<Value>) -> UbiquityValues<Value> {
        UbiquityValues(store: self, key: key, changes: changes)
    }
}

/// The values of one key as they come, see ``UbiquitousKeyValueStore/values(for:)``.
public struct UbiquityValues<Value: Codable & Sendable>: AsyncSequence, Sendable {
    fileprivate let store: UbiquitousKeyValueStore
    fileprivate let key: UbiquityKey<Value>
    fileprivate let changes: UbiquityChanges

    /// For the sequence's one reader.
    public func makeAsyncIterator() -> Iterator {
        Iterator(store: store, key: key, changes: changes.makeAsyncIterator())
    }

    /// Gives the present value first.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let store: UbiquitousKeyValueStore
        fileprivate let key: UbiquityKey<Value>
        fileprivate var changes: UbiquityChanges.Iterator
        /// What is stored where the reader is; nil: it has not begun.
        private var shown: PropertyListValue??

        fileprivate init(
            store: UbiquitousKeyValueStore, key: UbiquityKey<Value>,
            changes: UbiquityChanges.Iterator
        ) {
            self.store = store
            self.key = key
            self.changes = changes
        }

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
