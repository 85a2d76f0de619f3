// SPDX-License-Identifier: Apache-2.0

internal import NIOHTTP1
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
                try must(fields.contains(name: "accept"), "nothing accepts an event stream")
            }
            if fields.acceptsBinaryEvents {
                try must(fields.acceptsEventStream, "events come without a stream")
            }
            if !fields.contains(name: "accept") {
                try must(fields.answerFormat == .json, "the default is not JSON")
            }
            _ = fields.answerFormat
            _ = fields.bodyFormat
        }
    }

    private static func fields(_ text: String) -> HTTPHeaders {
        var fields = HTTPHeaders()
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 1)
            // As the parser has it: names are ASCII.
            guard parts.count == 2, parts[0].utf8.allSatisfy({ $0 < 0x80 }) else { continue }
            fields.add(name: String(parts[0]), value: String(parts[1]))
        }
        return fields
    }
}
