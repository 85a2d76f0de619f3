// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypesHTTP1
internal import SwiftProtobuf
internal import UbiquityCore
internal import UbiquityWire

/// Reads and checks the parts of a request.
extension Request {
    private var fields: HTTPHeaders { HTTPHeaders(headers) }

    /// Nil if there is none.
    var bearer: String? { fields.bearer }

    var clientVersion: String? { fields.clientVersion }

    /// See ``HTTPHeaders/answerFormat``.
    var answerFormat: WireFormat {
        get throws(Problem) { try fields.neededAnswerFormat }
    }

    /// Whether an answer of this type is accepted, as any is if none is stated.
    func accepts(_ type: String) -> Bool { fields.accepts(type) }

    private func readBody() async throws -> ByteBuffer {
        var parts = body.makeAsyncIterator()
        return try await parts.next() ?? ByteBuffer()
    }

    /// Reads a small message that does not nest.
    /// - Throws: ``Problem``, ``WireError``.
    func readMessage<M: Message>(_ type: M.Type) async throws -> M {
        let format = try fields.neededBodyFormat
        return try format.decode(type, from: try await readBody().bytes)
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
        guard try await readBody().readableBytes == 0 else {
            throw Problem.unsupportedMediaType
        }
        return M()
    }
}

extension ByteBuffer {
    var bytes: [UInt8] { Array(readableBytesView) }
}

extension HTTPField.Name {
    static let accelBuffering = HTTPField.Name("X-Accel-Buffering")!
}

extension Parameters {
    /// A part of the path, decoded.
    func text(_ name: String) throws(Problem) -> String {
        guard let text = get(name)?.removingPercentEncoding else { throw .notFound }
        return text
    }
}
