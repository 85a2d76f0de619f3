// SPDX-License-Identifier: Apache-2.0

internal import Foundation
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

    /// What a stream begins with. The identifier is for clients that resume by it: an older cursor than
    /// that of the last event only costs them records that they have.
    private static func changes(_ changes: ChangeSet) -> ByteBuffer {
        event("changes", id: changes.cursor, WireFormat.json.encode(WireChanges(changes)))
    }

    /// What was pushed, without the server's time, for who is told of it has that already.
    /// - Parameter isBinary: Whether the listener takes the shorter form of what is small.
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

    /// Of a larger push the text is shorter than base64, as a rule.
    private static let binaryPushBytesMax = 1_024

    /// The listener has all that there was when it came.
    static func ready(_ cursor: Cursor, _ config: ServerConfig) -> ByteBuffer {
        var ready = WireReady()
        ready.cursor = cursor.text
        ready.config = WireConfig(config)
        return event("ready", id: nil, WireFormat.json.encode(ready))
    }

    /// - Parameter data: One line.
    private static func event(_ name: String, id: Cursor?, _ data: [UInt8]) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.reserveCapacity(data.count + 96)
        buffer.writeString(head(name, id: id))
        buffer.writeBytes(data)
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
