// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// Collects when devices were last seen, to be stored from time to time. A write for every request
/// would cost more than the request.
///
/// State: `state`, guarded by its lock.
final class LastSeenBuffer: Sendable {
    private struct State {
        var waiting = LastSeenUpdate()
        var lastSeen: [DeviceReference: Int64] = [:]
    }

    /// The precision of the time at which a device was last seen, in milliseconds.
    static let seenMilliseconds: Int64 = 60_000
    /// The record is emptied when it exceeds this size.
    private static let rememberedMax = 65_536

    private let state = Mutex(State())
    private let clock: ServerClock

    init(clock: ServerClock) { self.clock = clock }

    func see(_ device: DeviceReference) {
        let now = clock.now()
        state.withLock { state in
            if let last = state.lastSeen[device], now - last < Self.seenMilliseconds { return }
            if state.lastSeen.count >= Self.rememberedMax { state.lastSeen.removeAll() }
            state.lastSeen[device] = now
            state.waiting.seenMilliseconds[device] = now
        }
    }

    /// Records that the device has the store up to this revision.
    func pass(_ revision: Int64, of store: StoreReference, by device: DeviceReference) {
        let deviceStore = LastSeenUpdate.DeviceStore(device: device, store: store)
        state.withLock { $0.waiting.passed[deviceStore] = revision }
    }

    /// Returns and clears what waits to be stored.
    func take() -> LastSeenUpdate {
        state.withLock { state in
            defer { state.waiting = LastSeenUpdate() }
            return state.waiting
        }
    }
}
