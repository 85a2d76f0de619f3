// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// The changes of a store from the creation of the sequence on, the app's own included.
///
/// A slow reader gets changes of the same origin combined, so none is lost and at most one change
/// per origin waits. The values can be read when a change is delivered. The sequence supports one
/// reader, and ends when the reading task is cancelled or the store is released.
public struct UbiquityChanges: AsyncSequence, Sendable {
    private let pending: PendingChanges
    private let wakes: AsyncStream<Void>

    package init(_ changes: Broadcast<UbiquityChange>) {
        let pending = PendingChanges()
        self.pending = pending
        wakes = AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let remove = changes.add { change in
                guard let change else { return continuation.finish() }
                pending.add(change)
                continuation.yield()
            }
            continuation.onTermination = { _ in remove() }
        }
    }

    /// Makes the iterator for the sequence's only reader.
    public func makeAsyncIterator() -> Iterator {
        Iterator(pending: pending, wakes: wakes.makeAsyncIterator())
    }

    /// Takes waiting changes, the longest waiting first.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let pending: PendingChanges
        fileprivate var wakes: AsyncStream<Void>.Iterator

        /// The next change; nil at the end.
        public mutating func next() async -> UbiquityChange? {
            await next(isolation: #isolation)
        }

        /// The next change; nil at the end.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async -> UbiquityChange? {
            repeat {
                if let change = pending.take() { return change }
            } while await wakes.next(isolation: actor) != nil
            return pending.take()
        }
    }
}

/// The changes that a reader has not taken yet.
///
/// Shared state: `changes`, at most one per origin, guarded by its mutex: the store adds and the
/// reader takes.
private final class PendingChanges: Sendable {
    private let changes = Mutex<[UbiquityChange]>([])

    func add(_ change: UbiquityChange) {
        changes.withLock { changes in
            guard let index = changes.firstIndex(where: { $0.origin == change.origin }) else {
                return changes.append(change)
            }
            let keys = Set(changes[index].keys).union(change.keys)
            changes[index].keys = keys.sorted()
        }
    }

    func take() -> UbiquityChange? {
        changes.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    }
}
