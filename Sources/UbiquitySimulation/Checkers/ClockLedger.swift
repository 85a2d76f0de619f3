// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// What the world's clocks did, and between which times the stamp of a write must be by that: it says
/// when the write was made, by the server's clock.
///
/// What a device cannot know: how long the server's word was on its way, or kept back; how much its uptime drifts; how
/// its wall clock was set between two boots; that it, or one of its processes, stood still.
struct ClockLedger {
    private struct Device {
        var wallErrors: Set<Int64> = []
        var boots: Set<UInt64> = []
        var driftMax: Int64 = 0
        var paused: Int64 = 0
        var keptBack: Int64 = 0
    }

    /// Milliseconds that the server's word is on its way, at most.
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
        // What it has not sent yet was written by the clocks of the other.
        case .cloned(let number, let original): devices[number] = devices[original]
        case .serverClock(let error): serverErrors.append(error)
        case .paused(let number, let milliseconds):
            devices[number, default: Device()].paused += milliseconds
        case .keptBack(let number, let milliseconds):
            devices[number, default: Device()].keptBack = max(
                milliseconds, devices[number]?.keptBack ?? 0)
        case .wrote(_, let writes): for write in writes { noteTime(write.time) }
        case .proposed(let act): noteTime(act.time)
        default: break
        }
    }

    private mutating func noteTime(_ time: Int64) {
        start = start ?? time
        end = max(end, time)
    }

    /// By how much a stamp of this device may be wrong.
    private func slack(of number: Int) -> Int64 {
        guard let device = devices[number] else { return lag }
        let wall = (device.wallErrors.max() ?? 0) - (device.wallErrors.min() ?? 0)
        let drift = device.driftMax * (end - (start ?? end)) / 1_000_000
        // It takes the middle of the time that it waited for that of the server's word.
        let measured = lag + device.keptBack / 2
        return measured + (device.boots.count > 1 ? wall : 0) + drift + device.paused
    }

    func least(_ write: some MadeSomewhere) -> Int64 {
        write.time + (serverErrors.min() ?? 0) - slack(of: write.disk.device)
    }

    /// - Parameter committed: When the server took it last, by its clock; nil: it is not known.
    /// - Returns: Nil: any.
    func greatest(_ write: some MadeSomewhere, committed: Int64?) -> Int64? {
        let error = serverErrors.max() ?? 0
        // Later than what its author had seen; and of that, the server takes no more than so much ahead.
        let seen = min(
            devices.keys.map { slack(of: $0) }.max() ?? lag, PushAdmission.clockAheadMax + lag)
        let made = write.time + error + max(slack(of: write.disk.device), seen)
        // What the server finds in its future is stamped anew, until it takes it.
        guard isSetBack else { return made }
        return committed.map { max(made, $0 + error - (serverErrors.min() ?? 0) + lag) }
    }

    private var isSetBack: Bool { zip(serverErrors, serverErrors.dropFirst()).contains { $1 < $0 } }
}

/// Something that an app did.
protocol MadeSomewhere {
    var disk: DiskName { get }
    /// The true time.
    var time: Int64 { get }
}

extension AppWrite: MadeSomewhere {}
extension AppProposal: MadeSomewhere {}
