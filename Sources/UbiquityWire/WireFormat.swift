// SPDX-License-Identifier: Apache-2.0

package import SwiftProtobuf
package import UbiquityCore

/// A message of the protocol.
package typealias WireMessage = Message

/// The two formats of a body.
package enum WireFormat: String, CaseIterable, Sendable {
    case protobuf = "application/x-protobuf"
    case json = "application/json"

    /// The format named by a `Content-Type` or one item of an `Accept`; nil for any other.
    package init?(mediaType: String) {
        // Nearly all requests and answers have it in this form.
        if let format = Self(rawValue: mediaType) {
            self = format
            return
        }
        let name = mediaType.lowercased().split(separator: ";").first.map {
            $0.filter { !$0.isWhitespace }
        }
        switch name {
        case "application/x-protobuf", "application/protobuf": self = .protobuf
        case "application/json": self = .json
        default: return nil
        }
    }

    /// A value of ``PropertyListValue/depthMax`` nested dictionaries takes three messages for each
    /// level, and a few around it.
    private static let messageDepthMax = 3 * 512 + 16

    /// Encodes deterministically: equal messages give equal bytes.
    package func encode(_ message: some Message) -> [UInt8] {
        do {
            switch self {
            case .protobuf:
                var options = BinaryEncodingOptions()
                options.useDeterministicOrdering = true
                return try message.serializedBytes(options: options)
            case .json:
                var options = JSONEncodingOptions()
                options.useDeterministicOrdering = true
                return try message.jsonUTF8Bytes(options: options)
            }
        } catch {
            // Our messages have no required fields and no `Any`, the two possible causes.
            preconditionFailure("A message of our own could not be encoded: \(error)")
        }
    }

    /// Decodes as ``decode(_:from:)``, for bytes of a sender who may want the reader to run out of
    /// memory.
    /// - Throws: ``WireError``, also if the message exceeds the bounds.
    package func decode<M: Message>(
        _ type: M.Type, from bytes: some SwiftProtobufContiguousBytes, within bounds: MessageBounds
    ) throws(WireError) -> M {
        try bounds.check(bytes: bytes.count)
        guard hasAtMost(bounds.elements, in: bytes, type) else {
            throw WireError("it has more than \(bounds.elements) elements")
        }
        return try decode(type, from: bytes)
    }

    /// Whether a message has at most this many elements, see ``MessageBounds/elements``. Takes one
    /// pass and no memory, and leaves it to the decoder to refuse bytes that are not a message.
    package func hasAtMost<M: Message>(
        _ elements: Int, in bytes: some SwiftProtobufContiguousBytes, _ type: M.Type
    ) -> Bool {
        bytes.withUnsafeBytes { ElementCount.fits($0, self, type, max: elements) }
    }

    /// Decodes a message, ignoring unknown fields.
    /// - Throws: ``WireError`` if the bytes are not a message of this type in this format. The
    ///   error names the field if that can be found.
    package func decode<M: Message>(
        _ type: M.Type, from bytes: some SwiftProtobufContiguousBytes
    ) throws(WireError) -> M {
        do {
            switch self {
            case .protobuf:
                var options = BinaryDecodingOptions()
                options.messageDepthLimit = Self.messageDepthMax
                return try M(serializedBytes: bytes, options: options)
            case .json: return try Self.decodeJSON(type, from: bytes)
            }
        } catch JSONDecodingError.messageDepthLimit, BinaryDecodingError.messageDepthLimit {
            throw WireError(PropertyListValue.depthRule)
        } catch { throw WireError(fault(of: bytes, as: type)) }
    }

    private static func decodeJSON<M: Message>(
        _ type: M.Type, from bytes: some SwiftProtobufContiguousBytes
    ) throws -> M {
        var options = JSONDecodingOptions()
        options.messageDepthLimit = messageDepthMax
        options.ignoreUnknownFields = true
        return try M(jsonUTF8Bytes: bytes, options: options)
    }

    private func fault<M: Message>(
        of bytes: some SwiftProtobufContiguousBytes, as type: M.Type
    ) -> String {
        guard self == .json else { return "the body is not \(rawValue) of this request's form" }
        return bytes.withUnsafeBytes { bytes in
            JSONFault.sentence(for: bytes) { (try? Self.decodeJSON(type, from: $0)) != nil }
        }
    }
}

/// The reason a message that could be parsed is not valid.
package struct WireError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A sentence, without a full stop, that names the field.
    package var description: String

    package init(_ description: String) { self.description = description }
}

extension MessageBounds {
    /// - Throws: ``WireError`` if there are, or will be, more bytes.
    package func check(bytes: Int) throws(WireError) {
        guard bytes > self.bytes else { return }
        throw WireError("it has more than \(self.bytes >> 10) kB")
    }
}
