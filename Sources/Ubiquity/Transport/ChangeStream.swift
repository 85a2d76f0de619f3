// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore
package import UbiquityWire

/// Reads a stream of changes as it arrives, on the queue of the HTTP client, without waiting for
/// a thread.
struct ChangeStream {
    /// The longest silence of a stream whose server has not announced its keep-alive interval yet.
    static let silenceMilliseconds = IdleTimeout.streamMilliseconds(keepAliveSeconds: 0)

    private let bounds: MessageBounds
    private var parser: EventStreamParser
    /// When progress was last reported, by the uptime.
    private var progressAt: Int64?

    init(within bounds: MessageBounds) {
        self.bounds = bounds
        parser = EventStreamParser(eventBytesMax: bounds.bytes)
    }

    /// - Parameter silenceMilliseconds: Set to what the server announces.
    /// - Returns: The events that the piece completes, without those that this version does not know.
    /// - Throws: ``WireError``.
    mutating func take(
        _ piece: UnsafeRawBufferPointer, _ silenceMilliseconds: inout Int64
    ) throws(WireError) -> [ChangeEvent] {
        var result: [ChangeEvent] = []
        for event in try parser.consume(piece) {
            guard let event = try ChangeEvent(event, within: bounds) else { continue }
            if case .message(.ready(_, let config)) = event.content {
                silenceMilliseconds = IdleTimeout.streamMilliseconds(
                    keepAliveSeconds: config.keepAliveSeconds)
            }
            result.append(event)
        }
        return result
    }

    /// Whether the last byte belongs to an event that is not complete.
    var isPartial: Bool { parser.isPartial }

    /// Whether to report that bytes have come: at most once a second.
    mutating func isProgressDue() -> Bool {
        let now = SystemClock.reading().uptime
        if let progressAt, now < progressAt + 1_000 { return false }
        progressAt = now
        return true
    }
}

/// An event of a stream: a message about a store, or its end.
package struct ChangeEvent: Sendable {
    package enum Content: Sendable {
        case message(StreamMessage)
        /// A stream of several stores goes on without this one.
        case ended(WireProblem)
    }

    /// Nil in a stream of one store.
    package let store: StoreIdentifier?
    package let content: Content

    /// Fails for an event that this version does not know.
    /// - Throws: ``WireError`` if the data does not match the event's name.
    package init?(_ event: StreamEvent, within bounds: MessageBounds) throws(WireError) {
        let store: String
        switch event.name {
        case "changes":
            let changes = try WireFormat.json.decode(
                WireChanges.self, from: event.data, within: bounds)
            (content, store) = (.message(.changes(try ChangeSet(changes))), changes.store)
        case "binary":
            guard let bytes = Data(base64Encoded: Data(event.data)) else {
                throw WireError("an event is not base64")
            }
            let changes = try WireFormat.protobuf.decode(
                WireChanges.self, from: bytes, within: bounds)
            (content, store) = (.message(.changes(try ChangeSet(changes))), changes.store)
        case "ready":
            let ready = try WireFormat.json.decode(
                WireReady.self, from: event.data, within: .small)
            let message = StreamMessage.ready(
                try Cursor(wire: ready.cursor), ServerConfig(ready.config))
            (content, store) = (.message(message), ready.store)
        case "resync":
            let resync = try? WireFormat.json.decode(
                WireResync.self, from: event.data, within: .small)
            (content, store) = (.message(.resync), resync?.store ?? "")
        case "ended":
            let problem = try WireFormat.json.decode(
                WireProblem.self, from: event.data, within: .small)
            (content, store) = (.ended(problem), problem.store)
        default: return nil
        }
        self.store = try? StoreIdentifier(store)
    }

    /// Nil for the end of a store.
    package var message: StreamMessage? {
        if case .message(let message) = content { message } else { nil }
    }
}

/// Parses a stream of server-sent events that arrives in pieces of any size.
///
/// The format of the HTML standard: lines end with CR, LF or both, and an empty line ends an event.
/// Several `data` lines are joined by line feeds. Comments and unknown fields are ignored, as are
/// events without data and an incomplete event at the end.
package struct EventStreamParser: Sendable {
    /// The maximum size of one event, or one line, in bytes.
    package let eventBytesMax: Int
    /// The beginning of a line whose end has not arrived.
    private var line: [UInt8] = []
    private var isFirstLine = true
    /// Whether the last byte was a CR, so that an LF belongs to it.
    private var isAfterCR = false
    private var name = ""
    private var data: [UInt8] = []

    package init(eventBytesMax: Int) { self.eventBytesMax = eventBytesMax }

    /// Whether an event, or a line, has begun and not ended.
    package var isPartial: Bool { !line.isEmpty || !name.isEmpty || !data.isEmpty }

    /// - Returns: The events that these bytes complete.
    /// - Throws: ``WireError`` if an event exceeds the limit; the parser cannot be used after that.
    package mutating func consume(
        _ bytes: UnsafeRawBufferPointer
    ) throws(WireError) -> [StreamEvent] {
        var events: [StreamEvent] = []
        var rest = bytes[...]
        if isAfterCR, let first = rest.first {
            if first == .lineFeed { rest = rest.dropFirst() }
            isAfterCR = false
        }
        while let end = rest.firstIndex(where: { $0 == .lineFeed || $0 == .carriageReturn }) {
            try finishLine(rest[..<end], &events)
            let isCR = rest[end] == .carriageReturn
            rest = rest[(end + 1)...]
            if isCR, rest.isEmpty { isAfterCR = true }
            if isCR, rest.first == .lineFeed { rest = rest.dropFirst() }
        }
        try checkSize(adding: line.count + rest.count)
        line += rest
        return events
    }

    private mutating func finishLine(
        _ end: Slice<UnsafeRawBufferPointer>, _ events: inout [StreamEvent]
    ) throws(WireError) {
        try checkSize(adding: line.count + end.count)
        // Most lines arrive whole and need not be copied.
        if line.isEmpty {
            take(line: end, &events)
        } else {
            line += end
            let whole = line
            line = []
            take(line: whole[...], &events)
        }
    }

    private mutating func take(
        line: some RandomAccessCollection<UInt8>, _ events: inout [StreamEvent]
    ) {
        var line = line[...]
        if isFirstLine {
            isFirstLine = false
            if line.starts(with: [0xEF, 0xBB, 0xBF]) { line = line.dropFirst(3) }
        }
        guard !line.isEmpty else { return finishEvent(&events) }
        let field = line.prefix { $0 != .colon }
        var value = line.dropFirst(field.count + 1)
        if value.first == .space { value = value.dropFirst() }
        take(field: field, value)
    }

    private mutating func take<Bytes: RandomAccessCollection<UInt8>>(field: Bytes, _ value: Bytes) {
        if field.elementsEqual("data".utf8) {
            data += value
            data.append(.lineFeed)
        } else if field.elementsEqual("event".utf8) {
            name = String(decoding: value, as: UTF8.self)
        }
    }

    private mutating func finishEvent(_ events: inout [StreamEvent]) {
        defer {
            name = ""
            data = []
        }
        guard !data.isEmpty else { return }
        data.removeLast()
        events.append(StreamEvent(name: name.isEmpty ? "message" : name, data: data))
    }

    private func checkSize(adding bytes: Int) throws(WireError) {
        guard data.count + bytes <= eventBytesMax else {
            throw WireError("an event has more than \(eventBytesMax >> 10) kB")
        }
    }
}

package struct StreamEvent: Hashable, Sendable {
    /// `message` if the stream names none.
    package var name: String
    package var data: [UInt8]

    package init(name: String, data: [UInt8]) {
        self.name = name
        self.data = data
    }
}

extension UInt8 {
    fileprivate static let lineFeed = UInt8(ascii: "\n")
    fileprivate static let carriageReturn = UInt8(ascii: "\r")
    fileprivate static let colon = UInt8(ascii: ":")
    fileprivate static let space = UInt8(ascii: " ")
}
