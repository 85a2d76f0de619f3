// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness
import Testing

/// `make mutations` proves that the checkers notice what is broken on purpose. What it breaks must
/// still be there.
struct MutationTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    @Test
    func `every mutation still applies to the sources`() async throws {
        let patches = try Self.patches()
        #expect(patches.count >= 20)
        for patch in patches {
            let run = try await Self.tryToApply(patch)
            #expect(run.status == 0, "\(patch.lastPathComponent): \(run)")
        }
    }

    @Test
    func `every mutation says what it breaks, which is the engine or a fake`() throws {
        for patch in try Self.patches() {
            let lines = try String(contentsOf: patch, encoding: .utf8).split(separator: "\n")
            let name = patch.lastPathComponent
            #expect(lines.first?.hasPrefix("# ") == true, "\(name) does not say what it breaks")
            let files = lines.filter { $0.hasPrefix("+++ ") }.map { $0.dropFirst(4) }
            #expect(!files.isEmpty, "\(name) changes nothing")
            for file in files {
                let isMeant = ["b/Sources/UbiquityCore/", "b/Sources/UbiquitySimulation/Parts/"]
                    .contains { file.hasPrefix($0) }
                #expect(isMeant, "\(name) changes \(file)")
            }
        }
    }

    private static func patches() throws -> [URL] {
        try FileManager.default.contentsOfDirectory(
            at: root.appendingPathComponent("Tests/Mutations"), includingPropertiesForKeys: nil
        )
        .filter { $0.pathExtension == "patch" }
        .sorted { $0.path < $1.path }
    }

    /// As the script does, changing nothing.
    private static func tryToApply(_ patch: URL) async throws -> ProgramRun {
        try await Stage("patch").run(
            [
                "patch", "--dry-run", "--strip=1", "--fuzz=0", "--forward",
                "--directory=\(root.path)", "--input=\(patch.path)",
            ], program: ProgramFile(path: "/usr/bin/env"))
    }
}
