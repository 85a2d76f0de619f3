// SPDX-License-Identifier: Apache-2.0

internal import AsyncHTTPClient
internal import Foundation
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
    let silence: SilenceWatch
    private let address: ServerAddress
    private let receive: @Sendable (StreamMessage) -> Void
    private var answer = ReceivedAnswer()
    private let bounds: MessageBounds
    private var parser: EventStreamParser
    /// When progress was last reported.
    private var progressAt = NIODeadline.distantPast

    init(
        _ address: ServerAddress, within bounds: MessageBounds,
        receive: @escaping @Sendable (StreamMessage) -> Void
    ) {
        self.address = address
        self.bounds = bounds
        self.receive = receive
        parser = EventStreamParser(eventBytesMax: bounds.bytes)
        silence = SilenceWatch(
            address, milliseconds: IdleTimeout.streamMilliseconds(keepAliveSeconds: 0))
    }

    func didReceiveHead(
        task: HTTPClient.Task<Void>, _ head: HTTPResponseHead
    ) -> EventLoopFuture<Void> {
        silence.move()
        answer.head = head
        if isStream { progress() }
        return task.eventLoop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(
        task: HTTPClient.Task<Void>, _ buffer: ByteBuffer
    ) -> EventLoopFuture<Void> {
        silence.move()
        do {
            try take(buffer)
            return task.eventLoop.makeSucceededVoidFuture()
        } catch { return task.eventLoop.makeFailedFuture(LinkFailure(error, address)) }
    }

    func didFinishRequest(task: HTTPClient.Task<Void>) throws {
        if !isStream { try answer.refuse(address) }
    }

    func hear(_ message: StreamMessage) {
        if case .ready(_, let config) = message {
            silence.milliseconds = IdleTimeout.streamMilliseconds(
                keepAliveSeconds: config.keepAliveSeconds)
        }
        receive(message)
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
            if let message = try StreamMessage(event, within: bounds) { hear(message) }
        }
    }
}

extension StreamMessage {
    /// Fails for an event that this version does not know.
    /// - Throws: ``WireError`` if the data does not match the event's name.
    package init?(
        _ event: EventStreamParser.Event, within bounds: MessageBounds
    ) throws(WireError) {
        switch event.name {
        case "changes":
            let changes = try WireFormat.json.decode(
                WireChanges.self, .changes, from: event.data, within: bounds)
            self = .changes(try ChangeSet(changes))
        case "binary":
            guard let bytes = Data(base64Encoded: Data(event.data)) else {
                throw WireError("an event is no base64")
            }
            let changes = try WireFormat.protobuf.decode(
                WireChanges.self, .changes, from: bytes, within: bounds)
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
