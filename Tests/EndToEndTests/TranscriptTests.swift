// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import ProcessHarness
internal import Testing

extension EndToEndTests {
    @Suite struct TranscriptTests {
        private static func page(_ path: String) throws -> String {
            let root = URL(fileURLWithPath: #filePath)
                .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
        }

        @Test func `the protocol's transcript is what a real server answers`()
            async throws
        {
            let transcript = try Transcript(markdown: try Self.page("Protocol/transcript.md"))
            #expect(transcript.exchanges.count > 10)
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let now = Int64(Date().timeIntervalSince1970 * 1_000)
                var placeholders = Placeholders([
                    "operatorCredential": try server.operatorCredential, "now": "\(now)",
                    "twoHoursAhead": "\(now + 7_200_000)",
                ])
                for exchange in transcript.exchanges {
                    let difference = try await replay(exchange, server, &placeholders)
                    #expect(difference == nil, "\(exchange.method) \(exchange.path)")
                    if difference != nil { return }
                }
            }
        }

        @Test func `every code of a problem that the transcript shows is in the page's table`()
            throws
        {
            let page = try Self.page("docs/PROTOCOL.md")
            let transcript = try Transcript(markdown: try Self.page("Protocol/transcript.md"))
            for exchange in transcript.exchanges where exchange.status >= 400 {
                let body = try JSONValue(text: exchange.answerBody ?? "")
                guard case .object(let fields) = body, case .string(let code)? = fields["code"]
                else { throw Trouble("no problem: \(body)") }
                #expect(page.contains("| \(exchange.status) | `\(code)` |"))
            }
        }

        /// - Returns: Where the answer differs.
        private func replay(
            _ exchange: Transcript.Exchange, _ server: ServerProcess,
            _ placeholders: inout Placeholders
        ) async throws -> String? {
            let eventCount = (exchange.answerBody ?? "").components(separatedBy: "event: ").count
            let answer = try await RawAnswer.to(
                exchange.method, server.url + placeholders.filled(exchange.path),
                headers: exchange.requestHeaders.map {
                    ($0.name, placeholders.filled($0.value))
                },
                body: exchange.requestBody.map(placeholders.filled),
                isEnough: { text in
                    eventCount > 1 && text.components(separatedBy: "\n\n").count >= eventCount
                })
            if answer.status != exchange.status { return "\(answer.status): \(answer.body)" }
            for (name, value) in exchange.answerHeaders {
                let actual = answer.headers[name.lowercased()] ?? ""
                if let difference = placeholders.difference(value, actual, at: name) {
                    return difference
                }
            }
            guard let body = exchange.answerBody else {
                return answer.body.isEmpty ? nil : "there is a body: \(answer.body)"
            }
            if eventCount > 1 { return try Self.events(body, answer.body, &placeholders) }
            return placeholders.difference(
                try JSONValue(text: body), try JSONValue(text: answer.body))
        }

        private static func events(
            _ expected: String, _ actual: String, _ placeholders: inout Placeholders
        ) throws -> String? {
            let (expected, actual) = (lines(expected), lines(actual))
            if expected.count != actual.count { return "other events: \(actual)" }
            for (expected, actual) in zip(expected, actual) {
                let name = expected.prefix { $0 != ":" } + ": "
                guard actual.hasPrefix(name) else { return "\(expected) is \(actual)" }
                let texts = [expected, actual].map { String($0.dropFirst(name.count)) }
                let difference =
                    name == "data: "
                    ? placeholders.difference(
                        try JSONValue(text: texts[0]), try JSONValue(text: texts[1]))
                    : placeholders.difference(texts[0], texts[1], at: String(name))
                if difference != nil { return difference }
            }
            return nil
        }

        private static func lines(_ events: String) -> [Substring] {
            events.split(separator: "\n").filter { !$0.hasPrefix(":") }
        }
    }
}
