// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Testing
internal import TortureLanguage
internal import UbiquitySimulation

@testable internal import UbiquityTorture

extension EndToEndTests {
    @Suite struct ChronicleTests {
        @Test(arguments: [false, true])
        func `a broken promise is a line of the torture's history, whatever showed it`(
            isEnd: Bool
        ) throws {
            let path = NSTemporaryDirectory() + "chronicle-\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: path) }
            let chronicle = try Chronicle(path: path) { [Objection()] }
            chronicle.began(1, on: DiskReference(device: 1, folder: "1", store: 0), name: "app")
            if isEnd { chronicle.ended(1, "ends") } else { chronicle.take(.opened([:]), of: 1) }
            #expect(chronicle.complaint == "no (Objection)")
            let history = try String(contentsOfFile: path, encoding: .utf8)
            #expect(history.contains("COMPLAINT: no (Objection)"))
        }
    }
}

/// Objects to everything.
private final class Objection: Checker {
    func check(_ observation: Observation, _ history: History) -> String? { "no" }
}
