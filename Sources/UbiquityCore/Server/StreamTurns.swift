// SPDX-License-Identifier: Apache-2.0

/// The stores of one event stream: in which order they are opened, and which of them sends next.
///
/// A store is opened only when the beginning of the one before it was sent: however many stores a
/// stream has, it takes the memory of one beginning. Stores with something to send take turns, each
/// with its beginning or one event, which nothing may interrupt. So an event waits for at most one
/// turn of each other store.
package struct StreamTurns: Sendable {
    package enum Step: Hashable, Sendable {
        /// To open this store: call ``wait(_:)`` when its beginning is there, or why it ended.
        case open(Int)
        /// To send from this store, until its turn ends: see ``endTurn(_:)``.
        case send(Int)
        /// To end the stream: all stores have ended.
        case finish
    }

    /// The rest that a store has to send after its turn.
    package enum Rest: Hashable, Sendable {
        case more
        case nothing
        /// Nothing any more: it has ended.
        case ended
    }

    private var unopened: Range<Int>
    /// The store that was opened last, if its first turn is not over.
    private var opening: Int?
    /// The stores with something to send. It is the turn of the first.
    private var line = FIFOQueue<Int>()
    private var waiting: Set<Int> = []
    /// The number of stores that have not ended.
    private var remaining: Int

    /// - Parameter count: The number of stores, which are numbered from 0 on.
    package init(count: Int) {
        unopened = 0..<count
        remaining = count
    }

    /// Whether no store has anything to send.
    package var isEmpty: Bool { line.isEmpty }

    /// A store has something to send.
    package mutating func wait(_ store: Int) {
        if waiting.insert(store).inserted { line.append(store) }
    }

    /// - Parameter canSend: Whether the connection can take something.
    /// - Returns: Nil if nothing is to be done now.
    package mutating func next(canSend: Bool) -> Step? {
        if opening == nil, let store = unopened.popFirst() {
            opening = store
            return .open(store)
        }
        if remaining == 0 { return .finish }
        return canSend ? line.first.map(Step.send) : nil
    }

    /// The store whose turn it is has sent its beginning, an event, or its end.
    package mutating func endTurn(_ rest: Rest) {
        guard let store = line.popFirst() else { return }
        waiting.remove(store)
        // An idle stream takes no memory for turns.
        if line.isEmpty { (line, waiting) = (FIFOQueue(), []) }
        if store == opening { opening = nil }
        switch rest {
        case .more: wait(store)
        case .nothing: break
        case .ended: remaining -= 1
        }
    }
}
