// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityCore

extension OpenStore {
    /// The pause between two requests that ask whether another device has everything.
    private static let pause = Duration.seconds(1)

    /// Reports to the server what this device has saved. A process that keeps running does so on its
    /// own, a little later. A failure does not make the sync fail.
    /// - Parameter start: As for ``awaitDelivery(to:since:)``.
    func sendReceipt(since start: ContinuousClock.Instant) async {
        if store.synchronize() { _ = try? await delivery(since: start) }
    }

    /// Asks once, for the rest of the timeout, or for as long as a pause if that is more.
    private func delivery(since start: ContinuousClock.Instant) async throws -> UbiquityDelivery {
        let latest = ContinuousClock.now + Self.pause - .seconds(timeout)
        return try await withTimeout(seconds: timeout, since: max(start, latest)) { [store] in
            try await store.delivery()
        }
    }

    /// Waits until a device has saved everything.
    /// - Parameters:
    ///   - name: Its name or ID.
    ///   - start: When the command began to wait for the server. The timeout counts from then on.
    /// - Throws: ``Failure`` if there is no such device, more than one, or the time is up.
    func awaitDelivery(to name: String, since start: ContinuousClock.Instant) async throws {
        let end = start + .seconds(timeout)
        while true {
            let device = try await delivery(since: start).devices.device(
                name,
                orThrow: Failure(
                    .no,
                    "no device \"\(name)\" may use this store; `ubiquity delivery` shows those that "
                        + "may"))
            if device.isCurrent { return }
            guard ContinuousClock.now + Self.pause < end else { throw late(device) }
            try await Task.sleep(for: Self.pause)
        }
    }

    private func late(_ device: UbiquityDelivery.Device) -> Failure {
        let seen = Phrase.time(device.lastSeen.milliseconds)
        let time = "\(timeout.formatted()) s"
        let state =
            if !device.hasStore {
                "has never used this store"
            } else if device.changesBehind == 0 {
                "has not confirmed within \(time) that it has everything"
            } else {
                "still lacks \(Phrase.counted(device.changesBehind, "change")) after \(time)"
            }
        return Failure(.unavailable, "\(device.name) \(state); it was last seen at \(seen)")
    }
}
