// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import SwiftProtobuf
internal import UbiquityCore
internal import UbiquityWire

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

    var acceptsEventStream: Bool { headers.acceptsEventStream }

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
            throw Problem.malformed("\"name\" must have a character that can be seen.")
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
            throw .malformed("The cursor is none that this server gave.")
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
