// SPDX-License-Identifier: Apache-2.0

package import SwiftProtobuf

/// The two formats of a body.
package enum WireFormat: String, CaseIterable, Sendable {
    case protobuf = "application/x-protobuf"
    case json = "application/json"

    /// The format named by a `Content-Type` or one item of an `Accept`; nil for any other.
    package init?(mediaType: some StringProtocol) {
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

    /// Decodes a message, ignoring unknown fields.
    /// - Throws: ``WireError`` if the bytes are not a message of this type in this format.
    package func decode<M: Message>(
        _ type: M.Type, from bytes: some SwiftProtobufContiguousBytes
    ) throws(WireError) -> M {
        do {
            switch self {
            case .protobuf:
                var options = BinaryDecodingOptions()
                options.messageDepthLimit = Self.messageDepthMax
                return try M(serializedBytes: bytes, options: options)
            case .json:
                var options = JSONDecodingOptions()
                options.messageDepthLimit = Self.messageDepthMax
                options.ignoreUnknownFields = true
                return try M(jsonUTF8Bytes: bytes, options: options)
            }
        } catch {
            throw WireError("the body is no \(rawValue) of this request's form (\(error))")
        }
    }
}
