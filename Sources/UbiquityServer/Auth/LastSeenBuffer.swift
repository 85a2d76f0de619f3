// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// Collects what devices say of themselves with their requests: when they were last seen, what they
/// have saved, what their clocks show, and the version of their library. It is stored from time to
/// time. A write for every request would cost more than the request.
///
/// State: `state`, guarded by its lock.
final class LastSeenBuffer: Sendable {
    private struct State {
        var waiting = LastSeenUpdate()
        /// The update that is being stored.
        var taken = LastSeenUpdate()
        /// When ``LastSeenUpdate/passed`` was last taken, in milliseconds of uptime.
        var passedTaken: Int64 = .min / 2
        var lastSeen: [DeviceReference: Int64] = [:]
        var measured: [DeviceReference: Int64] = [:]
        var versions: [DeviceReference: String] = [:]
    }

    /// The precision of the time at which a device was last seen, and the minimum time between two
    /// measurements of its clock, in milliseconds.
    static let seenMilliseconds: Int64 = 60_000
    /// The minimum time between two storings of what was saved, which busy devices say with every
    /// push, in milliseconds. Other nodes learn of it that late.
    static let passedMilliseconds: Int64 = 5_000
    /// A record is emptied when it exceeds this size. Of what devices have saved, nothing more is
    /// noted then until it is stored.
    private static let rememberedMax = 65_536

    private let state = Mutex(State())
    private let clock: ServerClock

    init(clock: ServerClock) { self.clock = clock }

    func see(_ device: DeviceReference) {
        let now = clock.now()
        state.withLock { state in
            guard Self.isDue(&state.lastSeen, device, at: now) else { return }
            state.waiting.seenMilliseconds[device] = now
        }
    }

    /// Records that the device says it has saved the store up to this position. A store without
    /// revisions does not exist.
    func pass(_ position: Position, of store: StoreReference, by device: DeviceReference) {
        let deviceStore = LastSeenUpdate.DeviceStore(device: device, store: store)
        state.withLock { state in
            guard position.revision > 0, state.waiting.passed.count < Self.rememberedMax else {
                return
            }
            state.waiting.passed[deviceStore] = position
        }
    }

    /// Records what the device's clock shows now, in milliseconds since 1970.
    func measure(_ milliseconds: Int64, of device: DeviceReference) {
        let now = clock.now()
        state.withLock { state in
            guard Self.isDue(&state.measured, device, at: now) else { return }
            state.waiting.clocks[device] = ClockMeasurement(
                aheadMilliseconds: milliseconds - now, milliseconds: now)
        }
    }

    /// Records the version of the device's library.
    func use(_ version: String, by device: DeviceReference) {
        state.withLock { state in
            guard state.versions[device] != version else { return }
            if state.versions.count >= Self.rememberedMax { state.versions.removeAll() }
            state.versions[device] = version
            state.waiting.versions[device] = version
        }
    }

    private static func isDue(
        _ record: inout [DeviceReference: Int64], _ device: DeviceReference, at now: Int64
    ) -> Bool {
        if let last = record[device], now >= last, now - last < seenMilliseconds { return false }
        if record.count >= rememberedMax { record.removeAll() }
        record[device] = now
        return true
    }

    /// Returns what is to be stored now. Call ``finish(isStored:)`` afterwards.
    /// - Parameter all: Whether nothing waits for its time.
    func take(all: Bool = false) -> LastSeenUpdate {
        let uptime = clock.uptime()
        return state.withLock { state in
            var (taken, rest) = (state.waiting, LastSeenUpdate())
            if all || uptime - state.passedTaken >= Self.passedMilliseconds {
                state.passedTaken = uptime
            } else {
                (taken.passed, rest.passed) = ([:], taken.passed)
            }
            (state.waiting, state.taken) = (rest, taken)
            return taken
        }
    }

    /// Ends what ``take(all:)`` began: the update is in the storage, or has to be taken again.
    func finish(isStored: Bool) {
        state.withLock { state in
            if !isStored { state.waiting.add(older: state.taken) }
            state.taken = LastSeenUpdate()
        }
    }

    /// Adds what the store's devices have said and is not in the storage yet, if it is of the store's
    /// history.
    func complete(_ holdings: inout StoreHoldings, of store: StoreReference) {
        state.withLock { state in
            for device in holdings.devices.map(\.reference) {
                let said = LastSeenUpdate.DeviceStore(device: device, store: store)
                let position = state.waiting.passed[said] ?? state.taken.passed[said]
                if let position, holdings.lineage.contains(position) {
                    holdings.passed[device.id] = position.revision
                }
            }
        }
    }
}
