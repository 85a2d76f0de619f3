// SPDX-License-Identifier: Apache-2.0

internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1
package import UbiquityCore
package import UbiquityWire

/// Parses the events of a stream as they arrive, on the connection's event loop, without waiting
/// for a thread.
///
/// Shared state: `answer`, `parser` and `progressAt`. Unchecked because AsyncHTTPClient calls every
/// method of a delegate on the task's event loop.
final class StreamReceiver: HTTPClientResponseDelegate, @unchecked Sendable {
    private let address: ServerAddress
    private let receive: @Sendable (StreamMessage) -> Void
    private var answer = ReceivedAnswer()
    private var parser = EventStreamParser()
    /// When progress was last reported.
    private var progressAt = NIODeadline.distantPast

    init(_ address: ServerAddress, receive: @escaping @Sendable (StreamMessage) -> Void) {
        self.address = address
        self.receive = receive
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
            if let event = try StreamMessage(event) { receive(event) }
        }
    }
}

extension StreamMessage {
    /// Fails for an event that this version does not know.
    /// - Throws: ``WireError`` if the data does not match the event's name.
    package init?(_ event: EventStreamParser.Event) throws(WireError) {
        switch event.name {
        case "changes":
            let changes = try WireFormat.json.decode(WireChanges.self, from: event.data)
            self = .changes(try ChangeSet(changes))
        case "ready":
            let ready = try WireFormat.json.decode(WireReady.self, from: event.data)
            self = .ready(try Cursor(wire: ready.cursor), ServerConfig(ready.config))
        case "resync": self = .resync
        default: return nil
        }
    }
}
