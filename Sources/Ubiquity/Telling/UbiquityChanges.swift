// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// The changes of a store as they happen, the app's own included, from the moment on at which the
/// sequence was made.
///
/// A reader that is slower than the changes gets those of one origin together, so that none is ever
/// lost and what waits for it stays small: at most one change an origin. The values can be read when
/// a change is told. The sequence is for one reader, and ends when the reading task is cancelled or
/// nobody holds the store any more.
public struct UbiquityChanges: AsyncSequence, Sendable {
    private let pending: PendingChanges
    private let wakes: AsyncStream<Void>

    init(_ changes: Broadcast<UbiquityChange>) {
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

    /// For the sequence's one reader.
    public func makeAsyncIterator() -> Iterator {
        Iterator(pending: pending, wakes: wakes.makeAsyncIterator())
    }

    /// Takes what waits, the longest waiting first.
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

/// What a reader has not taken yet.
///
/// Shared state: `changes`, at most one an origin, by its mutex: the store adds and the reader takes.
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
