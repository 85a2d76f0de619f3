// SPDX-License-Identifier: Apache-2.0

import Foundation
import FuzzEntries
import Testing

/// Checks the fuzzer's corpus without the fuzzer.
struct FuzzCorpusTests {
    @Test(arguments: FuzzEntry.all.map(\.name))
    func `every file of the corpus is handled as it should be`(_ name: String) throws {
        let entry = try #require(FuzzEntry.named(name))
        let files = try Self.files(of: name)
        #expect(!files.isEmpty)
        let thread = FuzzThread(entry)
        defer { thread.close() }
        for file in files {
            let bytes = [UInt8](try Data(contentsOf: file))
            #expect(throws: Never.self, "\(name)/\(file.lastPathComponent)") {
                try thread.check(bytes)
            }
        }
    }

    @Test(arguments: FuzzEntry.all.map(\.name))
    func `every message that the corpus began with is handled as it should be`(
        _ name: String
    ) throws {
        let entry = try #require(FuzzEntry.named(name))
        let thread = FuzzThread(entry)
        defer { thread.close() }
        for (seed, bytes) in try entry.seeds() {
            #expect(throws: Never.self, "\(name): \(seed)") { try thread.check(bytes) }
        }
    }

    private static func files(of name: String) throws -> [URL] {
        let folder = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Tests/Fuzz/Corpus/\(name)")
        return try FileManager.default.contentsOfDirectory(
            at: folder, includingPropertiesForKeys: nil
        ).sorted { $0.path < $1.path }
    }
}
