// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import UbiquityCore
internal import UbiquityWire

/// The lines of an event stream.
enum ServerSentEvent {
    /// A comment, as a keep-alive.
    static let keepAlive = ByteBuffer(string: ":\n\n")
    /// The listener missed something and must pull again.
    static let resync = ByteBuffer(string: "event: resync\ndata: {}\n\n")

    static func bytes(of message: StreamMessage) -> ByteBuffer {
        switch message {
        case .progress: keepAlive
        case .changes(let changes): Self.changes(changes)
        case .ready(let cursor, let config): ready(cursor, config)
        case .resync: resync
        }
    }

    static func changes(_ changes: ChangeSet) -> ByteBuffer {
        event("changes", id: changes.cursor, WireFormat.json.encode(WireChanges(changes)))
    }

    /// The listener has everything that existed when it subscribed.
    static func ready(_ cursor: Cursor, _ config: ServerConfig) -> ByteBuffer {
        var ready = WireReady()
        ready.cursor = cursor.text
        ready.config = WireConfig(config)
        return event("ready", id: nil, WireFormat.json.encode(ready))
    }

    /// - Parameter json: One line.
    private static func event(_ name: String, id: Cursor?, _ json: [UInt8]) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.reserveCapacity(json.count + 96)
        buffer.writeString("event: \(name)\n")
        if let id { buffer.writeString("id: \(id.text)\n") }
        buffer.writeString("data: ")
        buffer.writeBytes(json)
        buffer.writeString("\n\n")
        return buffer
    }
}
