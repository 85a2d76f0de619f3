// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import UbiquityCore

/// A store of an event stream: carries out its ``SendQueue``.
///
/// State: confined to `loop`. Unchecked because the hub knows subscribers on every thread, but only
/// uses their constants there.
final class Subscriber: HubSubscriber, @unchecked Sendable {
    let number: UInt64
    let turn: UInt64
    let device: DeviceReference
    /// As ``DeviceRights/expiresMilliseconds``.
    let expiresMilliseconds: Int64?
    let store: StoreReference
    /// The connection's event loop.
    let loop: any EventLoop
    private let hub: PushHub
    /// Its place among those of its account, and its part of the budget that all subscribers share.
    private let permit: AccountShares.Permit
    private let stream: EventStream
    /// Its number in the stream.
    let place: Int
    private var queue: SendQueue<Event>
    /// The beginning that is still to be sent.
    private var start = Answer()
    /// Whether a part of the beginning was sent.
    private var hasBegun = false

    init(
        number: UInt64, rights: DeviceRights, store: StoreReference,
        permit: AccountShares.Permit, hub: PushHub, in stream: EventStream
    ) {
        self.number = number
        device = rights.reference
        expiresMilliseconds = rights.expiresMilliseconds
        self.store = store
        self.permit = permit
        self.hub = hub
        self.stream = stream
        loop = stream.loop
        queue = SendQueue(bytesMax: hub.bytesPerStreamMax)
        (place, turn) = stream.place(for: number)
    }

    // MARK: - Events

    /// Sends an event, or lets it wait.
    func offer(_ event: Event) {
        let offer = queue.offer(
            event, revision: event.revision, canSend: stream.isFree,
            bytes: { event.bytes(stream.form).readableBytes }, reserve: permit.take)
        switch offer {
        case .send: stream.send(event)
        case .waits: if queue.isOpen { stream.wait(place) }
        case .dropped: break
        case .overflow:
            hub.noteOverflow()
            end(.overflow)
        }
    }

    func keepAlive() { stream.keepAlive(at: place) }

    /// Says how the store begins.
    func begin(with bytes: Answer, _ beginning: StreamStart) {
        guard !queue.hasEnded else { return }
        start = bytes
        queue.begin(beginning)
        stream.wait(place)
    }

    /// Removes and returns the next piece of the beginning; nil after the last.
    func nextPiece() -> ByteBuffer? {
        guard let piece = start.next() else { return nil }
        hasBegun = true
        return piece
    }

    /// Lets events follow the beginning, which was sent.
    /// - Returns: False if they do already, or if the store has ended.
    func open() -> Bool { !queue.isOpen && queue.open() }

    /// Removes and returns the event that is to be sent next.
    func nextEvent() -> Event? { queue.next(release: permit.give) }

    var hasNoEvent: Bool { queue.isEmpty }

    // MARK: - The end

    /// Ends the stream, or only this store of it.
    func end(_ end: StreamEnd) {
        switch end {
        case .closed: stream.end()
        case .overflow: stream.end(place, with: ServerSentEvent.resync(of: stream.name(of: store)))
        case .restart: refuse(.streamInterrupted)
        }
    }

    /// Ends this store, and so the stream if it has no other.
    func refuse(_ problem: Problem) {
        guard stream.isShared else { return stream.end() }
        stream.end(place, with: ServerSentEvent.ended(problem, store.identifier))
    }

    /// Drops what waits, but for the rest of a beginning that others' events cannot follow otherwise.
    func drop(all: Bool) {
        _ = queue.end(release: permit.give)
        if all || !hasBegun { start = Answer() }
    }

    /// Ends the subscription. Call if the store was never opened, too.
    func leave() {
        drop(all: true)
        hub.unsubscribe(self)
        permit.end()
    }
}

extension Problem {
    fileprivate static let streamInterrupted = unavailable(
        "The stream of this store was interrupted. Open it again.")
}
