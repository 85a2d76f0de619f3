// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import ServiceLifecycle
internal import UnixSignals

/// Reloads the TLS files at each SIGHUP.
struct TLSReloading: Service {
    let identity: TLSIdentity
    let logger: Logger

    func run() async throws {
        let signals = await UnixSignalsSequence(trapping: .sighup)
        for await _ in signals.cancelOnGracefulShutdown() {
            identity.refresh(isAsked: true, logger: logger)
        }
    }
}
