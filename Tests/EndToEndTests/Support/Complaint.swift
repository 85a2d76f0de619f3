// SPDX-License-Identifier: Apache-2.0

internal import ProcessHarness
internal import Testing

/// One line a person understands, and nothing on the standard output.
func complains(
    _ run: ProgramRun, _ status: Int, _ word: String, lines: Int = 1,
    at location: SourceLocation = #_sourceLocation
) {
    let isGood =
        run.status == status && run.errors.hasPrefix("ubiquity: ")
        && run.errors.split(separator: "\n").count == lines && run.errors.hasSuffix("\n")
        && run.errors.contains(word) && run.output.isEmpty
    #expect(isGood, "expected \(status), \(word): \(run)", sourceLocation: location)
}
