// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Two devices with an app each, whose preferences are mirrored to a store; and the server, a
/// register where the latest write wins. What is slow in life is a step of its own here.
struct TwoMirrors: Hashable {
    struct Device: Hashable {
        var local: String?
        var baseline: String?
        var store: String?
        /// Made at this time, and not sent yet.
        var unsent: Int?
    }

    enum Step: Hashable, CaseIterable {
        case setA, setB, remove, mirror, exchange

        var isOfTheApp: Bool { self == .setA || self == .setB || self == .remove }
    }

    var devices = [Device(), Device()]
    private var server: String?
    private var serverTime = 0
    private var clock = 0
    /// The number of values that the mirrors copied to the store or the preferences.
    private(set) var copies = 0

    init() {}

    mutating func take(_ step: Step, _ device: Int) {
        switch step {
        case .setA: devices[device].local = "a"
        case .setB: devices[device].local = "b"
        case .remove: devices[device].local = nil
        case .mirror: devices[device] = mirrored(devices[device])
        case .exchange: devices[device] = exchanged(devices[device])
        }
    }

    private mutating func mirrored(_ device: Device) -> Device {
        var device = device
        let step = MirrorRule.step(
            baseline: device.baseline, local: device.local, remote: device.store, mode: .compare)
        switch step {
        case .rest: return device
        case .rebase: break
        case .take:
            device.local = device.store
            copies += 1
        case .write:
            clock += 1
            device.unsent = clock
            device.store = device.local
            copies += 1
        }
        device.baseline = device.local
        return device
    }

    private mutating func exchanged(_ device: Device) -> Device {
        var device = device
        if let time = device.unsent, time > serverTime {
            (server, serverTime) = (device.store, time)
        }
        device.unsent = nil
        device.store = server
        return device
    }

    /// Without the app, until nothing changes any more.
    /// - Returns: How many rounds it took; nil: it never ended.
    mutating func settle(roundsMax: Int = 10) -> Int? {
        for round in 0..<roundsMax {
            let before = self
            for device in devices.indices {
                take(.mirror, device)
                take(.exchange, device)
            }
            if self == before { return round }
        }
        return nil
    }

    /// The one value that all have.
    var agreement: String?? {
        let all = Set(devices.flatMap { [$0.local, $0.store, $0.baseline] } + [server])
        return all.count == 1 ? all.first : nil
    }
}
