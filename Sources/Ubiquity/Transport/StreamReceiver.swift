// SPDX-License-Identifier: Apache-2.0

internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1
package import UbiquityCore
package import UbiquityWire

/// Reads the events of a stream where they arrive, on the connection's event loop, so that none
/// waits for a thread.
///
/// Shared state: `answer`, `parser` and `progressAt`. Unchecked: AsyncHTTPClient calls every method of
/// a delegate on the task's one event loop.
final class StreamReceiver: HTTPClientResponseDelegate, @unchecked Sendable {
    private let address: ServerAddress
    private let receive: @Sendable (StreamMessage) -> Void
    private var answer = ReceivedAnswer()
    private let bounds: MessageBounds
    private var parser: EventStreamParser
    /// When it was last told.
    private var progressAt = NIODeadline.distantPast

    init(
        _ address: ServerAddress, within bounds: MessageBounds,
        receive: @escaping @Sendable (StreamMessage) -> Void
    ) {
        self.address = address
        self.bounds = bounds
        self.receive = receive
        parser = EventStreamParser(eventBytesMax: bounds.bytes)
    }

    func didReceiveHead(
        task: HTTPClient.Task<Void>, _ head: HTTPResponseHead
    ) -> EventLoopFuture<Void> {
        answer.head = head
        if isStream { progress() }
        return task.eventLoop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(
        task: HTTPClient.Task<Void>, _ buffer: ByteBuffer
    ) -> EventLoopFuture<Void> {
        do {
            try take(buffer)
            return task.eventLoop.makeSucceededVoidFuture()
        } catch { return task.eventLoop.makeFailedFuture(LinkFailure(error, address)) }
    }

    func didFinishRequest(task: HTTPClient.Task<Void>) throws {
        if !isStream { try answer.refuse(address) }
    }

    private func progress() {
        progressAt = .now()
        receive(.progress)
    }

    private var isStream: Bool {
        answer.contentType?.lowercased().hasPrefix("text/event-stream") == true
    }

    private func take(_ buffer: ByteBuffer) throws {
        guard isStream else {
            answer.keep(buffer)
            return
        }
        let events = try buffer.withUnsafeReadableBytes { try parser.consume($0) }
        if events.isEmpty, progressAt + .seconds(1) <= .now() { progress() }
        for event in events {
            if let event = try StreamMessage(event, within: bounds) { receive(event) }
        }
    }
}

extension StreamMessage {
    /// Nil for an event that this version does not know.
    /// - Throws: ``WireError`` for data that is not what the event's name says.
    package init?(
        _ event: EventStreamParser.Event, within bounds: MessageBounds
    ) throws(WireError) {
        switch event.name {
        case "changes":
            let changes = try WireFormat.json.decode(
                WireChanges.self, .changes, from: event.data, within: bounds)
            self = .changes(try ChangeSet(changes))
        case "ready":
            let ready = try WireFormat.json.decode(
                WireReady.self, .fields, from: event.data, within: .small)
            self = .ready(try Cursor(wire: ready.cursor), ServerConfig(ready.config))
        case "resync": self = .resync
        default: return nil
        }
    }
}
