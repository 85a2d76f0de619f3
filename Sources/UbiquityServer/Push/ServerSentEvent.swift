// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import NIOCore
internal import UbiquityCore
internal import UbiquityWire

/// The lines of an event stream.
enum ServerSentEvent {
    /// A comment, as a keep-alive.
    static let keepAlive = ByteBuffer(string: ":\n\n")
    /// The subscriber missed something and must pull again.
    static let resync = ByteBuffer(string: "event: resync\ndata: {}\n\n")

    static func bytes(of message: StreamMessage) -> ByteBuffer {
        switch message {
        case .progress: keepAlive
        case .changes(let changes): Self.changes(changes)
        case .ready(let cursor, let config): ready(cursor, config)
        case .resync: resync
        }
    }

    /// The beginning of a stream. The identifier is for clients that resume by it. If it is older
    /// than the cursor of the last event, they only receive records again that they already have.
    private static func changes(_ changes: ChangeSet) -> ByteBuffer {
        event("changes", id: changes.cursor, WireFormat.json.encode(WireChanges(changes)))
    }

    /// A push, without the server's time, because the subscriber already has that.
    /// - Parameter isBinary: Whether the subscriber accepts the shorter format for small pushes.
    static func push(_ changes: ChangeSet, isBinary: Bool) -> ByteBuffer {
        var message = WireChanges(changes)
        message.serverMilliseconds = 0
        let bytes = changes.records.reduce(0) { $0 + $1.pushBytes }
        guard isBinary, bytes <= binaryPushBytesMax else {
            return event("changes", id: nil, WireFormat.json.encode(message))
        }
        let data = Data(WireFormat.protobuf.encode(message)).base64EncodedData()
        return event("binary", id: nil, Array(data))
    }

    /// For a larger push, the text is usually shorter than base64.
    private static let binaryPushBytesMax = 1_024

    /// The subscriber has everything that existed when it subscribed.
    static func ready(_ cursor: Cursor, _ config: ServerConfig) -> ByteBuffer {
        var ready = WireReady()
        ready.cursor = cursor.text
        ready.config = WireConfig(config)
        return event("ready", id: nil, WireFormat.json.encode(ready))
    }

    /// - Parameter data: A single line.
    private static func event(_ name: String, id: Cursor?, _ data: [UInt8]) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.reserveCapacity(data.count + 96)
        buffer.writeString(head(name, id: id))
        buffer.writeBytes(data)
        buffer.writeString(end)
        return buffer
    }

    /// Everything before the data, for an event whose data is made in pieces. It is followed by the
    /// pieces and ``end``.
    static func changesHead(_ cursor: Cursor) -> String { head("changes", id: cursor) }

    static let end = "\n\n"

    private static func head(_ name: String, id: Cursor?) -> String {
        "event: \(name)\n" + (id.map { "id: \($0.text)\n" } ?? "") + "data: "
    }
}
