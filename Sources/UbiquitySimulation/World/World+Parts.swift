// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

typealias SimulatedDevice = VirtualDevice<VirtualProcess>

/// The environment of a simulation's parts.
extension World: VirtualWorld {
    /// The number of requests in a thousand that suffer from a fault of the run.
    private static let oftenPerMille = 60

    /// The delay before an app whose store could not be opened is started again.
    private static let relaunchMilliseconds: Int64 = 1_000

    func delay(of device: Int, _ direction: Direction) -> Int64 {
        chance.int64(0...(isPeaceful ? 20 : scenario.delayMax(direction)))
    }

    func quality(of device: Int) -> LineQuality {
        scenario.qualities.isEmpty
            ? LineQuality() : scenario.qualities[device % scenario.qualities.count]
    }

    func strikes(_ fault: Fault, device: Int) -> Bool {
        if isPeaceful { return false }
        let isCertain = now < certain[fault]?[device] ?? 0
        guard isCertain || scenario.faults.contains(fault) && chance.perMille(Self.oftenPerMille)
        else { return false }
        journal.count(fault)
        return true
    }

    func note(_ observation: @autoclosure () -> Observation) { journal.note(observation()) }

    func newDevice(number: Int) -> SimulatedDevice {
        let hours = Int64(scenario.skewHoursMax) * 3_600_000
        return SimulatedDevice(
            number: number, clockError: chance.int64(-hours...hours), world: self)
    }

    /// Declares the rule, as apps do at their start.
    func declareRule(in engine: inout SyncEngine) {
        for (key, policy) in mergedKeys where policy == .register {
            engine.setPolicy(policy, resolver: AppOperation.resolver, for: key)
        }
    }

    func launch(store: Int, on device: SimulatedDevice) {
        guard device.isRunning else { return }
        guard device.canOpen(store) else {
            return after(Self.relaunchMilliseconds) { [self] in launch(store: store, on: device) }
        }
        device.add(VirtualProcess(device: device, store: store, world: self))
    }
}
