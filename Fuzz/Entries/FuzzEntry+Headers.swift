// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import UbiquityServer
internal import UbiquityWire

extension FuzzEntry {
    /// The fields of a request, a line each.
    static var headers: FuzzEntry {
        FuzzEntry("headers", stack: .system, bytesMax: 1_024) {
            Samples.headers().mapValues { Array($0.utf8) }
        } check: { bytes in
            let fields = fields(String(decoding: bytes, as: UTF8.self))
            if let bearer = fields.bearer {
                try must(!bearer.contains("\n"), "a credential has two lines")
            }
            if fields.acceptsEventStream {
                try must(fields[.accept] != nil, "nothing accepts an event stream")
            }
            if fields.acceptsBinaryEvents {
                try must(fields.acceptsEventStream, "events come without a stream")
            }
            if fields[.accept] == nil {
                try must(fields.answerFormat == .json, "the default is not JSON")
            }
            _ = fields.answerFormat
            _ = fields.bodyFormat
        }
    }

    private static func fields(_ text: String) -> HTTPFields {
        var fields = HTTPFields()
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, let name = HTTPField.Name(String(parts[0])) else { continue }
            fields.append(HTTPField(name: name, value: String(parts[1])))
        }
        return fields
    }
}
