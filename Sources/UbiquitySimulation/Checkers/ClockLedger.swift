// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// Records the world's clocks, and derives the range in which the stamp of a write must be: the
/// time when the write was made, by the server's clock.
///
/// A device cannot know how long the server's answer was on its way or held back, how much its
/// uptime drifts, how its wall clock was set between two boots, nor that it, or one of its
/// processes, stood still.
struct ClockLedger {
    private struct Device {
        var wallErrors: Set<Int64> = []
        var boots: Set<UInt64> = []
        var driftMax: Int64 = 0
        var paused: Int64 = 0
        var keptBack: Int64 = 0
    }

    /// The maximum time that the server's answer is on its way, in milliseconds.
    private let lag: Int64
    private var devices: [Int: Device] = [:]
    private var serverErrors: [Int64] = []
    private var start: Int64?
    private var end: Int64 = 0

    init(lag: Int64) { self.lag = lag }

    mutating func note(_ observation: Observation) {
        switch observation {
        case .clock(let number, let error, let drift, let boot):
            var device = devices[number] ?? Device()
            device.wallErrors.insert(error)
            device.boots.insert(boot)
            device.driftMax = max(device.driftMax, abs(drift))
            devices[number] = device
        // Its unsent writes were stamped by the clocks of the other one.
        case .cloned(let number, let original): devices[number] = devices[original]
        case .serverClock(let error): serverErrors.append(error)
        case .paused(let number, let milliseconds):
            devices[number, default: Device()].paused += milliseconds
        case .keptBack(let number, let milliseconds):
            devices[number, default: Device()].keptBack = max(
                milliseconds, devices[number]?.keptBack ?? 0)
        case .wrote(_, let writes): for write in writes { noteTime(write.time) }
        case .merged(let act): noteTime(act.time)
        default: break
        }
    }

    private mutating func noteTime(_ time: Int64) {
        start = start ?? time
        end = max(end, time)
    }

    /// The possible error of this device's stamps.
    private func slack(of number: Int) -> Int64 {
        guard let device = devices[number] else { return lag }
        let wall = (device.wallErrors.max() ?? 0) - (device.wallErrors.min() ?? 0)
        let drift = device.driftMax * (end - (start ?? end)) / 1_000_000
        // It takes the middle of its waiting time for the server's time.
        let measured = lag + device.keptBack / 2
        return measured + (device.boots.count > 1 ? wall : 0) + drift + device.paused
    }

    /// Whether one action was certainly made later than another, by the clocks alone.
    /// - Parameter committed: When the server last accepted the other one, by its clock; nil if
    ///   unknown.
    func isLater(
        _ action: some AppAction, than other: some AppAction, committed: Int64? = nil
    ) -> Bool {
        greatest(other, committed: committed).map { least(action) > $0 } ?? false
    }

    private func least(_ write: some AppAction) -> Int64 {
        write.time + (serverErrors.min() ?? 0) - slack(of: write.disk.device)
    }

    /// - Returns: Nil for no limit.
    private func greatest(_ write: some AppAction, committed: Int64?) -> Int64? {
        let error = serverErrors.max() ?? 0
        // Later than everything its author had seen, which the server accepts only up to a limit
        // ahead.
        let seen = min(
            devices.keys.map { slack(of: $0) }.max() ?? lag, HybridTimestamp.aheadMax + lag)
        let made = write.time + error + max(slack(of: write.disk.device), seen)
        // A write in the server's future gets a new stamp until the server accepts it.
        guard isSetBack else { return made }
        return committed.map { max(made, $0 + error - (serverErrors.min() ?? 0) + lag) }
    }

    private var isSetBack: Bool { zip(serverErrors, serverErrors.dropFirst()).contains { $1 < $0 } }
}

/// Something that an app did.
protocol AppAction {
    var disk: DiskReference { get }
    /// The true time.
    var time: Int64 { get }
}

extension AppWrite: AppAction {}
extension AppOperation: AppAction {}
