// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import NIOCore
package import UbiquityCore
package import UbiquityWire

/// Reads a stream of changes as it arrives, on the connection's event loop, without waiting for a
/// thread.
struct ChangeStream {
    /// The longest silence of a stream whose server has not announced its keep-alive interval yet.
    static let silenceMilliseconds = IdleTimeout.streamMilliseconds(keepAliveSeconds: 0)

    private let bounds: MessageBounds
    private let receive: @Sendable (StreamMessage) -> Void
    private var parser: EventStreamParser
    /// When progress was last reported.
    private var progressAt = NIODeadline.distantPast

    init(within bounds: MessageBounds, receive: @escaping @Sendable (StreamMessage) -> Void) {
        self.bounds = bounds
        self.receive = receive
        parser = EventStreamParser(eventBytesMax: bounds.bytes)
    }

    /// - Throws: ``WireError``.
    mutating func take(_ piece: ByteBuffer, _ idle: inout IdleTimeout) throws {
        let events = try piece.withUnsafeReadableBytes { try parser.consume($0) }
        if events.isEmpty, progressAt + .seconds(1) <= .now() {
            progressAt = .now()
            receive(.progress)
        }
        for event in events {
            guard let message = try StreamMessage(event, within: bounds) else { continue }
            if case .ready(_, let config) = message {
                idle.silenceMilliseconds = IdleTimeout.streamMilliseconds(
                    keepAliveSeconds: config.keepAliveSeconds)
            }
            receive(message)
        }
    }
}

extension StreamMessage {
    /// Fails for an event that this version does not know.
    /// - Throws: ``WireError`` if the data does not match the event's name.
    package init?(
        _ event: StreamEvent, within bounds: MessageBounds
    ) throws(WireError) {
        switch event.name {
        case "changes":
            let changes = try WireFormat.json.decode(
                WireChanges.self, from: event.data, within: bounds)
            self = .changes(try ChangeSet(changes))
        case "binary":
            guard let bytes = Data(base64Encoded: Data(event.data)) else {
                throw WireError("an event is not base64")
            }
            let changes = try WireFormat.protobuf.decode(
                WireChanges.self, from: bytes, within: bounds)
            self = .changes(try ChangeSet(changes))
        case "ready":
            let ready = try WireFormat.json.decode(
                WireReady.self, from: event.data, within: .small)
            self = .ready(try Cursor(wire: ready.cursor), ServerConfig(ready.config))
        case "resync": self = .resync
        default: return nil
        }
    }
}
