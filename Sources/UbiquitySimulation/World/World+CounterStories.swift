// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Stories of counters that the server folds.
extension World {
    var storiesOfCounters: [(SimulatedDevice) -> Void] {
        let faults = scenario.faults
        var stories: [(SimulatedDevice) -> Void] = []
        if !faults.isEmpty { stories += [eraseApart, eraseSoon] }
        if faults.contains(.serverRestore) { stories.append(restoreUnfolded) }
        if faults.contains(.compactTombstones), scenario.foldedMax != nil {
            stories.append(missFolding)
        }
        return stories
    }

    /// In each of these rounds, the person's other machines count.
    private func countElsewhere(than device: SimulatedDevice, inRounds rounds: [Int64]) {
        for round in rounds {
            after(round * spreading) { [self] in
                for process in others(than: device) { process.app.countAll(process) }
            }
        }
    }

    /// A machine is away and removes counters as it knows them. Meanwhile others count, so that the
    /// server folds these counts, remove them as well, and count again.
    private func eraseApart(_ device: SimulatedDevice) {
        for process in others(than: device).prefix(1) { process.app.countAll(process) }
        after(spreading) { [self] in
            if isPeaceful { return }
            device.goOffline()
            for process in running(device) { process.app.eraseCounts(process) }
        }
        countElsewhere(than: device, inRounds: [2, 3, 5, 6])
        after(4 * spreading) { [self] in
            for process in others(than: device) { process.app.eraseCounts(process) }
        }
        after(7 * spreading) { [self] in
            for process in running(device) where chance.coin() { process.app.countAll(process) }
            device.goOnline()
        }
    }

    /// An app removes what it has counted, perhaps before it hears that the server has folded that.
    private func eraseSoon(_ device: SimulatedDevice) {
        for process in running(device).prefix(1) { process.app.countAll(process) }
        after(chance.int64(0...spreading)) { [self] in
            for process in running(device).prefix(1) { process.app.eraseCounts(process) }
        }
    }

    /// A machine is away and its apps continue to count. The server folds its earlier counts and
    /// drops the increments.
    private func missFolding(_ device: SimulatedDevice) {
        for process in running(device).prefix(1) { process.app.countAll(process) }
        after(spreading) { [self] in
            if isPeaceful { return }
            device.goOffline()
            for process in running(device).prefix(1) { process.app.countAll(process) }
        }
        countElsewhere(than: device, inRounds: [2, 3])
        after(4 * spreading) { [self] in
            if isPeaceful { return }
            server.compactFolded(by: Self.compactionOfAll)
            device.goOnline()
        }
    }

    /// A server is restored from before it folded counts.
    private func restoreUnfolded(_ device: SimulatedDevice) {
        for process in running(device).prefix(1) { process.app.countAll(process) }
        after(spreading) { [self] in
            if !isPeaceful { server.makeBackup() }
        }
        countElsewhere(than: device, inRounds: [2, 3])
        after(4 * spreading) { [self] in
            if isPeaceful { return }
            server.restore()
            server.start()
        }
    }
}
