// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import ProcessHarness

/// The requests and answers that a page of the documentation shows.
struct Transcript {
    struct Exchange {
        var method: String
        /// With its query, and with placeholders.
        var path: String
        var requestHeaders: [(name: String, value: String)]
        var requestBody: String?
        var status: Int
        var answerHeaders: [(name: String, value: String)]
        var answerBody: String?
    }

    let exchanges: [Exchange]

    /// Reads what is in blocks fenced as `http`.
    /// - Throws: ``Trouble`` that quotes what is wrong.
    init(markdown: String) throws {
        var blocks: [[Substring]] = []
        var isInside = false
        for line in markdown.split(separator: "\n", omittingEmptySubsequences: false) {
            if line == "```http" {
                blocks.append([])
                isInside = true
            } else if line == "```" {
                isInside = false
            } else if isInside {
                blocks[blocks.count - 1].append(line)
            }
        }
        exchanges = try blocks.map(Exchange.init(lines:))
    }
}

extension Transcript.Exchange {
    fileprivate init(lines: [Substring]) throws {
        let request = Message(lines, prefix: ">")
        let answer = Message(lines, prefix: "<")
        let words = request.first.split(separator: " ")
        guard words.count == 2, let status = Int(answer.first.prefix(3)) else {
            throw Trouble("no request and answer: \(lines.joined(separator: "\n"))")
        }
        method = String(words[0])
        path = String(words[1])
        (requestHeaders, requestBody) = (request.headers, request.body)
        self.status = status
        (answerHeaders, answerBody) = (answer.headers, answer.body)
    }
}

/// The lines of one direction: the first, headers, an empty one, a body.
private struct Message {
    var first = ""
    var headers: [(name: String, value: String)] = []
    var body: String?

    init(_ lines: [Substring], prefix: String) {
        var lines = lines.filter { $0.hasPrefix(prefix) }.map {
            String($0.dropFirst($0.hasPrefix(prefix + " ") ? 2 : 1))
        }
        if !lines.isEmpty { first = lines.removeFirst() }
        let end = lines.firstIndex(of: "") ?? lines.endIndex
        headers = lines[..<end].compactMap { line in
            guard let colon = line.range(of: ": ") else { return nil }
            return (String(line[..<colon.lowerBound]), String(line[colon.upperBound...]))
        }
        if end < lines.endIndex {
            body = lines[lines.index(after: end)...].joined(separator: "\n")
        }
    }
}
