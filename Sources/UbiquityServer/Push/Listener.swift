// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import Synchronization
internal import UbiquityCore

/// One open stream: what waits for it, up to a bound.
///
/// State: `state`, guarded by its lock: the hub offers from the writer's thread, the stream takes
/// from its own task. `onEnd` is set once, by the stream, and guarded by its own lock.
final class Listener: Sendable {
    let number: UInt64
    let device: DeviceName
    /// As ``DeviceRights/expires``.
    let expires: Int64?
    let store: StoreKey
    /// Whether it takes small pushes in protobuf's binary form.
    let takesBinary: Bool
    private let bytesMax: Int
    /// Its place among its account's, and what waits for it of what all listeners may have waiting.
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
        /// Nil: a sign of life.
        var revision: Int64?
        var bytes: ByteBuffer
        /// When it was committed; nil: a sign of life.
        var committed: NIODeadline?
    }

    enum Delivery: Sendable {
        case events([Event])
        case end(End)
    }

    enum End: Sendable {
        /// More waited than may: what waited is dropped.
        case overflow
        /// The server shuts down, the device may not listen any more, or the connection is gone.
        case closed
    }

    init(
        number: UInt64, rights: DeviceRights, store: StoreKey, takesBinary: Bool, bytesMax: Int,
        permit: AccountShares.Permit
    ) {
        self.number = number
        device = rights.name
        expires = rights.expires
        self.store = store
        self.takesBinary = takesBinary
        self.bytesMax = bytesMax
        self.permit = permit
    }

    /// Never waits.
    /// - Returns: False if it was too much, and the listener has ended.
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

    /// A sign of life, where nothing else waits.
    func offerKeepAlive() {
        let isIdle = state.withLock { state in
            switch state {
            case .idle, .waiting: true
            case .buffered, .ended: false
            }
        }
        if isIdle { offer(Event(revision: nil, bytes: ServerSentEvent.keepAlive)) }
    }

    /// The first end is what the stream is told.
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
        // After an overflow, a close is still news: there is less time now.
        if isFirst || end == .closed { onEnd.withLock { $0 }?(end) }
    }

    /// Ends it, and gives its place back.
    func leave() {
        end(.closed)
        permit.end()
    }

    /// Calls when the listener ends; at once if it has.
    func whenEnded(_ body: @escaping @Sendable (End) -> Void) {
        onEnd.withLock { $0 = body }
        let ended: End? = state.withLock { state in
            if case .ended(let end) = state { end } else { nil }
        }
        if let ended { body(ended) }
    }

    /// Events of ``next()`` were taken by the connection.
    func wrote(_ events: [Event]) {
        permit.give(events.reduce(0) { $0 + $1.bytes.readableBytes })
    }

    /// All that waits, or waits for something. To be called by one task.
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
