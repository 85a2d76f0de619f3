// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import Synchronization
internal import UbiquityCore

/// One open stream, with a bounded buffer of waiting events.
///
/// State: `state`, guarded by its lock, because the hub offers events on the writer's thread and
/// the stream takes them in its own task. `onEnd` is set once, by the stream, and guarded by its
/// own lock.
final class Subscriber: Sendable {
    let number: UInt64
    let device: DeviceReference
    /// As ``DeviceRights/expiresMilliseconds``.
    let expiresMilliseconds: Int64?
    let store: StoreReference
    /// Whether it accepts small pushes in protobuf's binary format.
    let takesBinary: Bool
    private let bytesMax: Int
    /// Its place among those of its account, and its part of the budget that all subscribers share.
    private let permit: AccountShares.Permit
    private let state = Mutex(State.idle)
    private let onEnd = Mutex<(@Sendable (End) -> Void)?>(nil)

    /// `idle` → `buffered` (offer), `waiting` (next); `buffered` → `idle` (next); `waiting` →
    /// `idle` (offer); each → `ended`, which stays.
    private enum State {
        case idle
        case waiting(CheckedContinuation<Delivery, Never>)
        case buffered([Event], bytes: Int)
        case ended(End)
    }

    struct Event: Sendable {
        /// Nil for a keep-alive.
        var revision: Int64?
        var bytes: ByteBuffer
        /// The time of the commit; nil for a keep-alive.
        var committed: NIODeadline?
    }

    enum Delivery: Sendable {
        case events([Event])
        case end(End)
    }

    enum End: Sendable {
        /// The buffer overflowed, and was dropped.
        case overflow
        /// The server is shutting down, the device may no longer listen, or the connection is gone.
        case closed
    }

    init(
        number: UInt64, rights: DeviceRights, store: StoreReference, takesBinary: Bool,
        bytesMax: Int,
        permit: AccountShares.Permit
    ) {
        self.number = number
        device = rights.reference
        expiresMilliseconds = rights.expiresMilliseconds
        self.store = store
        self.takesBinary = takesBinary
        self.bytesMax = bytesMax
        self.permit = permit
    }

    /// Never blocks.
    /// - Returns: False if the buffer overflowed and the subscriber has ended.
    @discardableResult func offer(_ event: Event) -> Bool {
        let isAccepted = accept(event)
        if !isAccepted { end(.overflow) }
        return isAccepted
    }

    private func accept(_ event: Event) -> Bool {
        state.withLock { state in
            let size = event.bytes.readableBytes
            switch state {
            case .idle:
                guard permit.take(size) else { return false }
                state = .buffered([event], bytes: size)
            case .waiting(let continuation):
                guard permit.take(size) else { return false }
                state = .idle
                continuation.resume(returning: .events([event]))
            case .buffered(_, let bytes) where bytes + size > bytesMax: return false
            case .buffered(var events, let bytes):
                guard permit.take(size) else { return false }
                state = .idle
                events.append(event)
                state = .buffered(events, bytes: bytes + size)
            case .ended: break
            }
            return true
        }
    }

    /// Adds a keep-alive if nothing else waits.
    func offerKeepAlive() {
        let isIdle = state.withLock { state in
            switch state {
            case .idle, .waiting: true
            case .buffered, .ended: false
            }
        }
        if isIdle { offer(Event(revision: nil, bytes: ServerSentEvent.keepAlive)) }
    }

    /// Ends the subscriber. The stream is told of the first end.
    func end(_ end: End) {
        let isFirst = state.withLock { state in
            if case .ended = state { return false }
            switch state {
            case .waiting(let continuation): continuation.resume(returning: .end(end))
            case .buffered(_, let bytes): permit.give(bytes)
            case .idle, .ended: break
            }
            state = .ended(end)
            return true
        }
        // After an overflow, a close still matters, because it leaves less time.
        if isFirst || end == .closed { onEnd.withLock { $0 }?(end) }
    }

    /// Ends the subscriber, and releases its place.
    func leave() {
        end(.closed)
        permit.end()
    }

    /// Calls `body` when the subscriber ends, at once if it already has.
    func whenEnded(_ body: @escaping @Sendable (End) -> Void) {
        onEnd.withLock { $0 = body }
        let ended: End? = state.withLock { state in
            if case .ended(let end) = state { end } else { nil }
        }
        if let ended { body(ended) }
    }

    /// Records that the connection has taken events of ``next()``.
    func wrote(_ events: [Event]) {
        permit.give(events.reduce(0) { $0 + $1.bytes.readableBytes })
    }

    /// Returns everything that waits, or waits for the next event. Must be called by one task only.
    func next() async -> Delivery {
        await withCheckedContinuation { continuation in
            state.withLock { state in
                switch state {
                case .idle: state = .waiting(continuation)
                case .waiting: preconditionFailure("Two tasks read one listener.")
                case .buffered(let events, _):
                    state = .idle
                    continuation.resume(returning: .events(events))
                case .ended(let end): continuation.resume(returning: .end(end))
                }
            }
        }
    }
}
