// SPDX-License-Identifier: Apache-2.0

internal import ProcessHarness
internal import Ubiquity

/// Devices of one account that have completed their first sync, and are connected.
struct TwoDevices {
    let stage: Stage
    let server: ServerProcess
    let a: Device
    let b: Device
}

/// Runs a test with two devices and their server.
/// - Parameter options: The server's.
func withTwoDevices(
    options: [String] = [], _ body: (TwoDevices) async throws -> Void
) async throws {
    try await onStage { stage in
        let server = try await ServerProcess.started(stage, options: options)
        let a = try Device(home: await server.newHome("a", isFirst: true))
        let b = try Device(home: await server.newHome("b"))
        defer {
            a.close()
            b.close()
        }
        for device in [a, b] { try await device.store.synchronizeNow() }
        try await body(TwoDevices(stage: stage, server: server, a: a, b: b))
    }
}
