// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import SwiftProtobuf
internal import UbiquityCore
internal import UbiquityWire

/// What a request says, checked.
extension Request {
    /// Nil: there is none.
    var bearer: String? { headers.bearer }

    /// The first form that the request accepts; JSON if it does not say.
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

    /// Refuses before it reads more than it may.
    /// - Throws: ``Problem``.
    func readBody(bytesMax: Int) async throws -> ByteBuffer {
        if let length = headers[.contentLength].flatMap({ Int($0) }), length > bytesMax {
            throw Problem.bodyTooLarge(max: bytesMax)
        }
        do { return try await body.collect(upTo: bytesMax) } catch is NIOTooManyBytesError {
            throw Problem.bodyTooLarge(max: bytesMax)
        }
    }

    /// The same, out of what the bodies of all requests may have together.
    /// - Parameter permit: Has what was read.
    /// - Throws: ``Problem``.
    func readBody(
        bytesMax: Int, permit: AccountShares.Permit
    ) async throws -> ByteBuffer {
        if let length = headers[.contentLength].flatMap({ Int($0) }), length > bytesMax {
            throw Problem.bodyTooLarge(max: bytesMax)
        }
        var whole = ByteBuffer()
        for try await part in body {
            guard whole.readableBytes + part.readableBytes <= bytesMax else {
                throw Problem.bodyTooLarge(max: bytesMax)
            }
            guard permit.take(part.readableBytes) else { throw Problem.bodiesInMemory }
            whole.writeImmutableBuffer(part)
        }
        return whole
    }

    /// A small message that does not nest.
    /// - Throws: ``Problem``, ``WireError``.
    func readMessage<M: Message>(_ type: M.Type) async throws -> M {
        let format = try bodyFormat
        let body = try await readBody(bytesMax: 16_384)
        return try format.decode(type, from: body.bytes)
    }

    /// What a device is to be called.
    /// - Throws: ``Problem``, ``WireError``.
    func readTitle() async throws -> String {
        guard let title = DeviceTitle.fit(try await readMessage(WireRename.self).name) else {
            throw Problem.malformed("\"name\" must have a character that can be seen.")
        }
        return title
    }

    /// The same where the body may be left out; then the message is empty.
    /// - Throws: ``Problem``, ``WireError``.
    func readMessage<M: Message>(orNone type: M.Type) async throws -> M {
        guard headers[.contentType] == nil else { return try await readMessage(type) }
        guard try await readBody(bytesMax: 16_384).readableBytes == 0 else {
            throw Problem.unsupportedMediaType
        }
        return M()
    }

    /// A number of the query, from 1 on; nil: it is not given.
    func count(_ name: Substring, max: Int) throws(Problem) -> Int? {
        guard let text = uri.queryParameters[name] else { return nil }
        guard let count = Int(text), (1...max).contains(count) else {
            throw .malformed("\(name) must be a number from 1 to \(max).")
        }
        return count
    }

    /// Nil: the whole store is asked for. The header wins, for it is what a browser sends when
    /// it comes again.
    func position(orLastEvent: Bool) throws(Problem) -> Position? {
        let last = orLastEvent ? headers[.lastEventID] : nil
        guard let text = last ?? uri.queryParameters["since"].map({ String($0) }) else {
            return nil
        }
        guard let cursor = Cursor(text), let position = Position(cursor) else {
            throw .cursorInvalid
        }
        return position
    }
}

extension ByteBuffer {
    var bytes: [UInt8] { Array(readableBytesView) }
}

extension HTTPField.Name {
    static let lastEventID = HTTPField.Name("Last-Event-ID")!
    static let retryAfter = HTTPField.Name("Retry-After")!
    static let accelBuffering = HTTPField.Name("X-Accel-Buffering")!
}

extension Parameters {
    /// A part of the path, as it was meant.
    func text(_ name: String) throws(Problem) -> String {
        guard let text = get(name)?.removingPercentEncoding else { throw .notFound }
        return text
    }
}
