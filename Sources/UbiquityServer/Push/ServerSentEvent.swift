// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import NIOCore
internal import UbiquityCore
internal import UbiquityWire

/// The lines of an event stream.
enum ServerSentEvent {
    /// A comment, as a keep-alive.
    static let keepAlive = ByteBuffer(string: ":\n\n")

    /// The subscriber missed something of its store, and must pull again.
    /// - Parameter store: Nil in a stream that has only one, as in all other events.
    static func resync(of store: StoreIdentifier?) -> ByteBuffer {
        var resync = WireResync()
        resync.store = store?.string ?? ""
        return event("resync", WireFormat.json.encode(resync))
    }

    /// A store of a stream has ended, and the others go on.
    static func ended(_ problem: Problem, _ store: StoreIdentifier) -> ByteBuffer {
        event("ended", WireFormat.json.encode(problem.message(of: store)))
    }

    /// A push, without the server's time, because the subscriber already has that.
    /// - Parameter isBinary: Whether the subscriber accepts the shorter format for small pushes.
    static func push(
        _ changes: ChangeSet, of store: StoreIdentifier?, isBinary: Bool
    ) -> ByteBuffer {
        var message = WireChanges(changes, of: store)
        message.serverMilliseconds = 0
        let bytes = changes.records.reduce(0) { $0 + $1.pushBytes }
        guard isBinary, bytes <= binaryPushBytesMax else {
            return event("changes", WireFormat.json.encode(message))
        }
        let data = Data(WireFormat.protobuf.encode(message)).base64EncodedData()
        return event("binary", Array(data))
    }

    /// For a larger push, the text is usually shorter than base64.
    private static let binaryPushBytesMax = 1_024

    /// The first bytes of a push as text.
    static let pushHead = "event: changes\ndata: {"

    /// The subscriber has everything that existed when it subscribed.
    static func ready(
        _ cursor: Cursor, _ config: ServerConfig, of store: StoreIdentifier?
    ) -> ByteBuffer {
        var ready = WireReady()
        ready.cursor = cursor.text
        ready.config = WireConfig(config)
        ready.store = store?.string ?? ""
        return event("ready", WireFormat.json.encode(ready))
    }

    /// - Parameter data: A single line.
    private static func event(_ name: String, _ data: [UInt8]) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.reserveCapacity(data.count + 96)
        buffer.writeString("event: \(name)\ndata: ")
        buffer.writeBytes(data)
        buffer.writeString(end)
        return buffer
    }

    /// The beginning of a stream up to its data, which is made in pieces. It is followed by these and
    /// ``end``. The identifier is for clients that resume a stream of one store by it. If it is older
    /// than the cursor of the last event, they only receive records again that they already have.
    static func changesHead(_ cursor: Cursor, of store: StoreIdentifier?) -> String {
        "event: changes\n" + (store == nil ? "id: \(cursor.text)\n" : "") + "data: "
    }

    static let end = "\n\n"
}
