// SPDX-License-Identifier: Apache-2.0

internal import ProcessHarness
internal import Testing

/// Real processes, real sockets, real files. Each situation runs several processes and is bounded
/// in time.
@Suite(.timeLimit(.minutes(15)))
struct EndToEndTests {}

/// Runs a test on a stage, which lives until its end. Preferences lie there, so that none outlives it.
func onStage(_ body: (Stage) async throws -> Void) async throws {
    let stage = try Stage("end-to-end", environment: { ["XDG_CONFIG_HOME": $0] })
    defer { withExtendedLifetime(stage) {} }
    try await body(stage)
}
