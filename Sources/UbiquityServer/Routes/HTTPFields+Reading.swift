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
        self[values: .accept].flatMap { $0.split(separator: ",") }.compactMap { item in
            item.split(separator: ";").first.map {
                $0.trimmingCharacters(in: .whitespaces).lowercased()
            }
        }
    }
}
