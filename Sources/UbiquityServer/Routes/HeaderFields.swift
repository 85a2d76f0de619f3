// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import NIOHTTP1
internal import UbiquityCore
package import UbiquityWire

/// Reads the header fields of a request.
extension HTTPHeaders {
    /// The credential; nil if there is none.
    package var bearer: String? {
        guard let field = first(name: "authorization")?.utf8 else { return nil }
        let scheme = field.prefix { !$0.isBlank }
        guard scheme.elementsEqual("bearer".utf8, by: { $0 | 0x20 == $1 }) else { return nil }
        let credential = Substring(field[scheme.endIndex...]).trimmed
        return credential.isEmpty ? nil : String(credential)
    }

    /// The proof of the account's key that the device shows; nil if it shows none.
    /// - Throws: ``Problem`` if it cannot be one.
    var keyProof: Bytes32? {
        get throws(Problem) {
            guard let field = first(name: keyProofHeader) else { return nil }
            guard let proof = Data(base64Encoded: field).flatMap({ Bytes32($0) }) else {
                throw .malformed("A proof of a key has \(Bytes32.count) bytes, in base64.")
            }
            return proof
        }
    }

    /// The first accepted format; if none is stated, that of the body, which is JSON unless stated; nil if
    /// neither format is accepted.
    package var answerFormat: WireFormat? {
        guard let field = first(name: "accept") else { return bodyFormat ?? .json }
        if let format = WireFormat(rawValue: field) { return format }
        let accepted = acceptedTypes
        if accepted.isEmpty { return .json }
        for type in accepted {
            if let format = WireFormat(mediaType: type) { return format }
            if type == "*/*" || type == "application/*" { return .json }
        }
        return nil
    }

    /// The version of this project's client library, or the name and version of a browser or
    /// another client; nil if the request does not say. Short, and visible ASCII.
    var clientVersion: String? {
        let products = first(name: "user-agent")?.split(separator: " ") ?? []
        guard let first = products.first else { return nil }
        let product = first.hasPrefix("Mozilla/") ? Self.browser(among: products) ?? first : first
        let version = product.hasPrefix("ubiquity/") ? product.dropFirst(9) : product
        let isFit =
            (1...64).contains(version.utf8.count)
            && version.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        return isFit ? String(version) : nil
    }

    /// A browser names those that it resembles, too: it is the first of these.
    private static func browser(among products: [Substring]) -> Substring? {
        let names = [
            "Edg", "OPR", "Firefox", "FxiOS", "CriOS", "Chrome", "HeadlessChrome", "Version",
        ]
        let found = names.lazy.compactMap { name in products.first { $0.hasPrefix(name + "/") } }
        return found.first.map { $0.hasPrefix("Version/") ? "Safari" + $0.dropFirst(7) : $0 }
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
        first(name: "content-type").flatMap { WireFormat(mediaType: $0) }
    }

    private var acceptedTypes: [String] {
        acceptedItems.compactMap { item in
            item.split(separator: ";").first.map { String($0.trimmed) }
        }
    }

    /// The media types with their parameters, in lower case.
    private var acceptedItems: [String] {
        self["accept"].flatMap { $0.lowercased().split(separator: ",").map(String.init) }
    }
}

extension Substring {
    /// Without blanks at both ends.
    fileprivate var trimmed: Substring {
        let rest = utf8.drop(while: \.isBlank)
        guard let last = rest.lastIndex(where: { !$0.isBlank }) else { return "" }
        return Substring(rest[...last])
    }
}

extension UInt8 {
    fileprivate var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }
}
