// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import UbiquityWire

/// Reads an event stream. Comments are events named ":".
struct EventReader {
    struct Event: Equatable {
        var name = ""
        var id: String?
        var data = ""

        var changes: WireChanges {
            get throws { try WireFormat.json.decode(WireChanges.self, from: Array(data.utf8)) }
        }

        var keys: [String] {
            get throws { try changes.records.map(\.key) }
        }

        /// Its store, in a stream of several; empty if it names none.
        var store: String {
            get throws {
                guard name != "binary" else {
                    let bytes = Data(base64Encoded: data) ?? Data()
                    return try WireFormat.protobuf.decode(WireChanges.self, from: bytes).store
                }
                // Other fields are ignored.
                return try WireFormat.json.decode(WireResync.self, from: Array(data.utf8)).store
            }
        }

        /// The name, and the store.
        var title: String { get throws { try "\(name) \(store)" } }

        var problem: WireProblem {
            get throws { try WireFormat.json.decode(WireProblem.self, from: Array(data.utf8)) }
        }
    }

    let status: Int
    let headers: [String: String]
    private var pieces: AsyncThrowingStream<[UInt8], any Error>.Iterator
    private var text = ""

    init(_ answer: TestAnswer) {
        (status, headers) = (answer.status, answer.headers)
        pieces = answer.pieces.makeAsyncIterator()
    }

    /// Nil at the end.
    mutating func next() async throws -> Event? {
        while true {
            if let end = text.range(of: "\n\n") {
                let event = Self.parse(text[..<end.lowerBound])
                text.removeSubrange(..<end.upperBound)
                return event
            }
            guard let piece = try await pieces.next(isolation: #isolation) else { return nil }
            text += String(decoding: piece, as: UTF8.self)
        }
    }

    /// The next that is no comment.
    mutating func nextEvent() async throws -> Event? {
        while let event = try await next() {
            if event.name != ":" { return event }
        }
        return nil
    }

    private static func parse(_ lines: Substring) -> Event {
        var event = Event()
        for line in lines.split(separator: "\n") {
            if line.hasPrefix(":") { event.name = ":" }
            if line.hasPrefix("event: ") { event.name = String(line.dropFirst(7)) }
            if line.hasPrefix("id: ") { event.id = String(line.dropFirst(4)) }
            if line.hasPrefix("data: ") { event.data = String(line.dropFirst(6)) }
        }
        return event
    }
}
