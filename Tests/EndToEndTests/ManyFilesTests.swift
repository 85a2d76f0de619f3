// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import ProcessHarness
internal import Testing

#if os(Linux)
extension EndToEndTests {
    /// What the other tests rely on while one of them has a connection to each of a thousand devices.
    struct ManyFilesTests {
        @Test(.enabled(if: sysconf(Int32(_SC_OPEN_MAX)) >= 8_192))
        func `a program starts where many files are open, and has none of them`() async throws {
            try await onStage { stage in
                let files = (0..<2_000).map { _ in open("/dev/null", O_RDONLY) }
                defer { for file in files { close(file) } }
                try #require(files.allSatisfy { $0 >= 0 })
                let run = try await stage.run(
                    ["-c", "cd /proc/self/fd; echo *; exit 3"],
                    program: ProgramFile(path: "/bin/sh"))
                #expect(run.status == 3 && run.output == "0 1 2 3\n", "\(run)")
            }
        }
    }
}
#endif
