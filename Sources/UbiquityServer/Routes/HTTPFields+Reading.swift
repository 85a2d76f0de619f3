// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import HTTPTypes
package import UbiquityWire

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
