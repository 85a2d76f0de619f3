// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Ubiquity
import UbiquityCore
import UbiquityHTTP

/// Protocol/vectors/problems.json, which clients in other languages are tested with too.
@Suite struct `The vectors of problems` {
    @Test func `say what a failed request means`() throws {
        let file = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Protocol/vectors/problems.json")
        let content = try JSONSerialization.jsonObject(with: Data(contentsOf: file))
        let cases = try #require((content as? [String: Any])?["cases"] as? [[String: Any]])
        try #require(!cases.isEmpty)
        for vector in cases {
            let headers = try #require(vector["headers"] as? [String: String])
            let body = try vector["body"].map { try JSONSerialization.data(withJSONObject: $0) }
            let failure = LinkFailure(
                HTTPAnswerHead(
                    status: try #require(vector["status"] as? Int),
                    fields: headers.map { ($0.key, $0.value) }),
                body: [UInt8](body ?? Data()),
                try ServerAddress("https://ubiquity.example"))
            let (means, number) = Self.meaning(of: failure.kind)
            #expect(means == vector["means"] as? String, "\(vector)")
            let expected =
                vector["waitMilliseconds"] ?? vector["serverMilliseconds"] ?? vector["generation"]
            #expect(number == expected as? Int64, "\(vector)")
        }
    }

    private static func meaning(of kind: LinkFailure.Kind) -> (String, Int64?) {
        switch kind {
        case .unreachable: ("retry", nil)
        case .timedOut: ("smaller", nil)
        case .unauthorized: ("sign-in", nil)
        case .refused: ("refused", nil)
        case .tooLarge: ("too-large", nil)
        case .cursorGone(isOtherHistory: false): ("cursor-forgotten", nil)
        case .cursorGone(isOtherHistory: true): ("cursor-other-history", nil)
        case .clockAhead(let milliseconds): ("clock-ahead", milliseconds)
        case .sealed(let generation): ("sealed", Int64(generation))
        case .busy(let milliseconds): ("wait", milliseconds)
        case .tooManyStreams(let milliseconds): ("without-stream", milliseconds)
        }
    }
}
