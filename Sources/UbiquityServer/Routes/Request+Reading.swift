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
    var bearer: String? { head.bearer }

    /// The first format that the request accepts; JSON if it states none.
    var answerFormat: WireFormat {
        get throws(Problem) { try head.answerFormat }
    }

    private func readBody() async throws -> ByteBuffer {
        var parts = body.makeAsyncIterator()
        return try await parts.next() ?? ByteBuffer()
    }

    /// Reads a small message that does not nest.
    /// - Throws: ``Problem``, ``WireError``.
    func readMessage<M: Message>(_ type: M.Type) async throws -> M {
        let format = try head.bodyFormat
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

    /// A number in the query, from 1 on; nil if it is not given.
    func count(_ name: Substring, max: Int) throws(Problem) -> Int? {
        guard let text = uri.queryParameters[name] else { return nil }
        guard let count = Int(text), (1...max).contains(count) else {
            throw .malformed("\(name) must be a number from 1 to \(max).")
        }
        return count
    }
}

extension UInt8 {
    fileprivate var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }
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
        guard let field = self[.authorization]?.utf8 else { return nil }
        let scheme = field.prefix { !$0.isBlank }
        guard scheme.elementsEqual("bearer".utf8, by: { $0 | 0x20 == $1 }) else { return nil }
        let credential = field[scheme.endIndex...].drop(while: \.isBlank)
        guard let last = credential.lastIndex(where: { !$0.isBlank }) else { return nil }
        return String(credential[...last])
    }

    /// The first accepted format, JSON if none is stated; nil if neither format is accepted.
    package var answerFormat: WireFormat? {
        guard let field = self[.accept] else { return .json }
        if let format = WireFormat(rawValue: field) { return format }
        let accepted = acceptedTypes
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
