// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import UbiquityCore
internal import UbiquityWire

/// The lines of an event stream.
enum ServerSentEvent {
    /// A comment, as a sign of life.
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

    /// The listener has all that there was when it came.
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
        buffer.writeString(head(name, id: id))
        buffer.writeBytes(json)
        buffer.writeString(end)
        return buffer
    }

    /// All before the data of an event whose data is made in pieces; ``end`` follows them.
    static func changesHead(_ cursor: Cursor) -> String { head("changes", id: cursor) }

    static let end = "\n\n"

    private static func head(_ name: String, id: Cursor?) -> String {
        "event: \(name)\n" + (id.map { "id: \($0.text)\n" } ?? "") + "data: "
    }
}
