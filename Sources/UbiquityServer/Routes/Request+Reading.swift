// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import SwiftProtobuf
internal import UbiquityCore
package import UbiquityWire

/// Reads and checks the parts of a request.
extension Request {
    /// Nil if there is none.
    var bearer: String? { headers.bearer }

    /// The first format that the request accepts; JSON if it states none.
    var answerFormat: WireFormat {
        get throws(Problem) {
            guard let format = headers.answerFormat else { throw .notAcceptable }
            return format
        }
    }

    var bodyFormat: WireFormat {
        get throws(Problem) {
            guard let format = headers.bodyFormat else { throw .unsupportedMediaType }
            return format
        }
    }

    /// Refuses the request before it reads more than allowed.
    /// - Parameter permit: Is charged with the bytes that were read, from the budget for bodies;
    ///   nil for a small body.
    /// - Throws: ``Problem``.
    func readBody(
        bytesMax: Int, permit: AccountShares.Permit? = nil
    ) async throws -> ByteBuffer {
        if let length = headers[.contentLength].flatMap({ Int($0) }), length > bytesMax {
            throw Problem.bodyTooLarge(max: bytesMax)
        }
        var whole = ByteBuffer()
        for try await part in body {
            guard whole.readableBytes + part.readableBytes <= bytesMax else {
                throw Problem.bodyTooLarge(max: bytesMax)
            }
            guard permit?.take(part.readableBytes) ?? true else { throw Problem.bodiesInMemory }
            whole.writeImmutableBuffer(part)
        }
        return whole
    }

    /// Reads a small message that does not nest.
    /// - Throws: ``Problem``, ``WireError``.
    func readMessage<M: Message>(_ type: M.Type) async throws -> M {
        let format = try bodyFormat
        let body = try await readBody(bytesMax: 16_384)
        return try format.decode(type, from: body.bytes)
    }

    /// The device's name in the body.
    /// - Throws: ``Problem``, ``WireError``.
    func readTitle() async throws -> String {
        guard let displayName = DeviceDisplayName.fit(try await readMessage(WireRename.self).name)
        else {
            throw Problem.malformed("\"name\" must have a visible character.")
        }
        return displayName
    }

    /// The same if the body is optional; without one, the message is empty.
    /// - Throws: ``Problem``, ``WireError``.
    func readMessage<M: Message>(orNone type: M.Type) async throws -> M {
        guard headers[.contentType] == nil else { return try await readMessage(type) }
        guard try await readBody(bytesMax: 16_384).readableBytes == 0 else {
            throw Problem.unsupportedMediaType
        }
        return M()
    }

    /// A number in the query, from 1 on; nil if it is not given.
    func count(_ name: Substring, max: Int) throws(Problem) -> Int? {
        guard let text = uri.queryParameters[name] else { return nil }
        guard let count = Int(text), (1...max).contains(count) else {
            throw .malformed("\(name) must be a number from 1 to \(max).")
        }
        return count
    }

    /// Nil if the whole store is requested. The header takes precedence, because browsers send it
    /// when they reconnect.
    func position(orLastEvent: Bool) throws(Problem) -> Position? {
        let last = orLastEvent ? headers[.lastEventID] : nil
        guard let text = last ?? uri.queryParameters["since"].map({ String($0) }) else {
            return nil
        }
        guard let cursor = Cursor(text), let position = Position(cursor) else {
            throw .malformed("This cursor was not issued by this server.")
        }
        return position
    }
}

extension ByteBuffer {
    var bytes: [UInt8] { Array(readableBytesView) }
}

extension HTTPField.Name {
    static let lastEventID = HTTPField.Name("Last-Event-ID")!
    static let accelBuffering = HTTPField.Name("X-Accel-Buffering")!
}

extension Parameters {
    /// A part of the path, decoded.
    func text(_ name: String) throws(Problem) -> String {
        guard let text = get(name)?.removingPercentEncoding else { throw .notFound }
        return text
    }
}

/// Reads the header fields of a request.
extension HTTPFields {
    /// The credential; nil if there is none.
    package var bearer: String? {
        guard let field = self[.authorization] else { return nil }
        let parts = field.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return parts[1].trimmingCharacters(in: .whitespaces)
    }

    /// The first accepted format, JSON if none is stated; nil if neither format is accepted.
    package var answerFormat: WireFormat? {
        let accepted = acceptedTypes
        if accepted.isEmpty { return .json }
        for type in accepted {
            if let format = WireFormat(mediaType: type) { return format }
            if type == "*/*" || type == "application/*" { return .json }
        }
        return nil
    }

    package var acceptsEventStream: Bool { acceptedTypes.contains("text/event-stream") }

    /// Whether events of small pushes may be in protobuf's binary format.
    package var acceptsBinaryEvents: Bool {
        acceptedItems.contains { item in
            let parts = item.split(separator: ";").map { $0.filter { !$0.isWhitespace } }
            return parts.first == "text/event-stream" && parts.contains("events=binary")
        }
    }

    /// Whether an answer of this type is accepted, as any is if none is stated.
    func accepts(_ type: String) -> Bool {
        let group = String(type.prefix { $0 != "/" }) + "/*"
        return acceptedTypes.isEmpty
            || acceptedTypes.contains { [type, group, "*/*"].contains($0) }
    }

    /// The format of the body; nil if the protocol does not have it.
    package var bodyFormat: WireFormat? {
        self[.contentType].flatMap { WireFormat(mediaType: $0) }
    }

    private var acceptedTypes: [String] {
        acceptedItems.compactMap { item in
            item.split(separator: ";").first.map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    /// The media types with their parameters, in lower case.
    private var acceptedItems: [String] {
        self[values: .accept].flatMap { $0.lowercased().split(separator: ",").map(String.init) }
    }
}
