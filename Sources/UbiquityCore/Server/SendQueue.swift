// SPDX-License-Identifier: Apache-2.0

/// The events of one store of a stream: which are sent, wait, or are old.
///
/// `starting` (the store is being read, or its beginning sent, and events wait) → `open` (they are sent,
/// as fast as the other side reads) → `ended` (they are dropped).
package struct SendQueue<Event> {
    private enum Phase {
        case starting
        case open
        case ended
    }

    private struct Waiting {
        let event: Event
        let revision: Int64
        let bytes: Int
    }

    package enum Offer: Hashable, Sendable {
        /// To send it now.
        case send
        case waits
        /// The subscriber has it already, or has ended.
        case dropped
        /// There is no room for it. The stream must end.
        case overflow
    }

    private var phase = Phase.starting
    /// Nil until the store has been read.
    private var beginning: StreamStart?
    private var waiting = FIFOQueue<Waiting>()
    private var bytes = 0
    private let bytesMax: Int

    /// - Parameter bytesMax: The bytes that may wait, but for one event.
    package init(bytesMax: Int) { self.bytesMax = bytesMax }

    package var isOpen: Bool { phase == .open }
    package var hasEnded: Bool { phase == .ended }
    package var isEmpty: Bool { waiting.isEmpty }

    /// The store was read: its state is sent before the events.
    package mutating func begin(_ start: StreamStart) { beginning = start }

    /// From now on, events are sent.
    /// - Returns: False if it has ended.
    package mutating func open() -> Bool {
        guard !hasEnded else { return false }
        phase = .open
        return true
    }

    /// An event was published.
    /// - Parameters:
    ///   - canSend: Whether the connection can take it now, with nothing before it.
    ///   - bytes: Its size as sent, which is only computed if it must wait.
    ///   - reserve: Takes that size from the budget of all; returns false if that is used up.
    package mutating func offer(
        _ event: Event, revision: Int64, canSend: Bool, bytes: () -> Int, reserve: (Int) -> Bool
    ) -> Offer {
        guard !hasEnded, beginning?.isNews(revision) ?? true else { return .dropped }
        if isOpen, canSend, waiting.isEmpty { return .send }
        let size = bytes()
        guard waiting.isEmpty || self.bytes + size <= bytesMax, reserve(size) else {
            return .overflow
        }
        waiting.append(Waiting(event: event, revision: revision, bytes: size))
        self.bytes += size
        return .waits
    }

    /// Takes the event that is to be sent next, when the connection can take it.
    /// - Parameter release: Gives the size of each event that it removes back to the budget.
    package mutating func next(release: (Int) -> Void) -> Event? {
        while isOpen, let next = waiting.popFirst() {
            bytes -= next.bytes
            release(next.bytes)
            if beginning?.isNews(next.revision) ?? true { return next.event }
        }
        return nil
    }

    /// Drops what waits.
    /// - Parameter release: As in ``next(release:)``.
    /// - Returns: False if it had ended before.
    package mutating func end(release: (Int) -> Void) -> Bool {
        guard !hasEnded else { return false }
        phase = .ended
        release(bytes)
        (waiting, bytes) = (FIFOQueue(), 0)
        return true
    }
}
