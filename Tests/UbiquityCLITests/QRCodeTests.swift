// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import ProcessHarness
import Testing

@testable import UbiquityCLI

/// QR codes, as Debian's `zbarimg` reads them from a picture of what the terminal shows.
struct QRCodeTests {
    private static let letters = Array("https://ubiquity.example:7717/a#7KQ2-M9XD-4TRW")

    private static func text(_ count: Int) -> String {
        String((0..<count).map { letters[$0 % letters.count] })
    }

    /// The smallest and the longest text of each version.
    @Test(arguments: [
        1, 14, 15, 26, 27, 42, 43, 62, 63, 84, 85, 106, 107, 122, 123, 152, 153, 180, 181, 213,
    ])
    func `what a scanner reads is the text`(count: Int) async throws {
        let folder = try TemporaryFolder()
        let text = Self.text(count)
        let code = try #require(QRCode(text))
        let picture = folder.file("code.pbm")
        try Self.picture(of: code.lines).write(
            toFile: picture, atomically: true, encoding: .ascii)
        let scanner = ProgramFile(path: "/usr/bin/zbarimg")
        let scan = try await Stage("code").run(["--quiet", "--raw", picture], program: scanner)
        #expect(scan.output == text + "\n")
    }

    @Test func `a text that is too long or not ASCII has no code`() {
        #expect(QRCode(Self.text(214)) == nil)
        #expect(QRCode("é") == nil)
    }

    /// A module is four pixels wide and high. What is not a block is dark.
    private static func picture(of lines: [String]) -> String {
        let rows = lines.flatMap { line in
            ["▀", "▄"].map { half in
                line.map { $0 == "█" || String($0) == half ? "0000" : "1111" }.joined()
            }
        }
        let width = rows[0].count
        return "P1\n\(width) \(rows.count * 4)\n"
            + rows.flatMap { [String](repeating: wrapped($0), count: 4) }.joined(separator: "\n")
            + "\n"
    }

    /// A line of the format has at most 70 characters.
    private static func wrapped(_ row: String) -> String {
        stride(from: 0, to: row.count, by: 64).map { start in
            String(row.dropFirst(start).prefix(64))
        }.joined(separator: "\n")
    }
}
