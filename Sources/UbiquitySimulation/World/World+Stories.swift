// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Faults that only do harm in sequence, with certain actions of apps in between.
extension World {
    /// Plays one of the stories whose faults this run has, after some time, and then the next.
    func planStory() {
        let stories = self.stories
        guard !stories.isEmpty else { return }
        after(chance.interval(mean: 8 * scenario.workInterval)) { [self] in
            guard !isPeaceful else { return }
            chance.pick(stories)(chance.pick(devices))
            planStory()
        }
    }

    private var stories: [(SimulatedDevice) -> Void] {
        var stories: [(SimulatedDevice) -> Void] = []
        let faults = scenario.faults
        if !faults.isEmpty { stories.append(beginAnew) }
        if faults.contains(.compactTombstones) { stories.append(missRemovals) }
        if faults.contains(.compactTombstones), faults.contains(.duplicate) {
            stories.append(repeatCompacted)
        }
        if mergedKeys.values.contains(.counter) { stories += storiesOfCounters }
        if mergedKeys.values.contains(.register) { stories.append(writeBesideRule) }
        if faults.contains(.limitsChange) { stories.append(lowerLimitsUnheard) }
        if faults.contains(.slowAnswer) { stories.append(measureLate) }
        if faults.contains(.serverClockJump) {
            stories += [setClockBackUnheard, setClockBackUnseen]
        }
        if faults.contains(.diskUnreadable), scenario.accounts > 1 {
            stories.append(signInUnreadable)
        }
        if faults.contains(.serverClockWeeks) { stories.append(compactAfterJump) }
        if faults.contains(.failOver) { stories.append(failOverDuringCommit) }
        if scenario.slowest != nil { stories.append(writeAll) }
        if scenario.qualities.contains(where: \.isBuffering) { stories.append(endBuffered) }
        return stories
    }

    /// The maximum time for a write to reach all devices if nothing goes wrong.
    var spreading: Int64 {
        scenario.delayMax(.there) + 2 * scenario.delayMax(.back) + 6 * scenario.flushMax
            + 2 * server.slowness + Int64(2_000 / scenario.allowance.perSecond) + 10
    }

    func running(_ device: SimulatedDevice) -> [VirtualProcess] {
        isPeaceful ? [] : device.processes.filter { !$0.isStopped }
    }

    func others(than device: SimulatedDevice) -> [VirtualProcess] {
        devices.filter { $0 !== device && $0.account == device.account }.flatMap(running)
    }

    /// Drops everything, whoever waits for it.
    static let compactionOfAll = CompactionRule(
        retentionMilliseconds: 20_000, liveMilliseconds: 0, tombstonesMax: 0)

    // MARK: - Removals that are dropped

    /// A machine is away, and its apps overwrite values of others. Meanwhile others remove them,
    /// and the server drops the tombstones.
    private func missRemovals(_ device: SimulatedDevice) {
        let keys = Set((0..<2).map { _ in plainKey() }).sorted()
        for process in others(than: device).prefix(1) { process.app.write(each: keys, process) }
        after(spreading) { [self] in
            if isPeaceful { return }
            device.goOffline()
            for process in running(device) { process.app.write(each: keys, process) }
        }
        after(2 * spreading) { [self] in
            for process in others(than: device) { process.app.remove(each: keys, process) }
        }
        after(4 * spreading) { [self] in
            if isPeaceful { return }
            server.compactTombstones(by: Self.compactionOfAll)
            after(chance.coin() ? 0 : absence()) { device.goOnline() }
        }
    }

    /// The network repeats a push after others have removed all of it and the server has dropped
    /// the tombstones.
    private func repeatCompacted(_ device: SimulatedDevice) {
        let keys = [plainKey(), plainKey()]
        run.certain[.duplicate, default: [:]][device.number] = now + spreading
        for process in running(device) { process.app.write(each: keys, process) }
        after(spreading) { [self] in
            for process in devices.flatMap(running) { process.app.remove(each: keys, process) }
        }
        after(2 * spreading) { [self] in
            if isPeaceful { return }
            server.compactTombstones(by: Self.compactionOfAll)
        }
    }

    /// The server's clock is set wrong by weeks just after a removal.
    private func compactAfterJump(_ device: SimulatedDevice) {
        let key = plainKey()
        for process in running(device) { process.app.write(each: [key], process) }
        for process in running(device) { process.app.remove(each: [key], process) }
        after(spreading) { [self] in
            guard !isPeaceful else { return }
            setServerClockWrong()
            noteClocks()
            for process in running(device) { process.app.write(each: [key], process) }
        }
        after(2 * spreading) { [self] in server.compactTombstones() }
    }

    /// A standby takes over just when a commit is answered.
    private func failOverDuringCommit(_ device: SimulatedDevice) {
        server.database.duringCommit = { [self] in if !isPeaceful { failOver() } }
    }

    // MARK: - Rules of apps

    /// Apps write a key with a rule of their own without knowing of each other. While the rule is
    /// called for that, one device writes again, the same key and others.
    private func writeBesideRule(_ device: SimulatedDevice) {
        for process in others(than: device) + running(device) {
            process.app.changeByRule(process)
        }
        for _ in 0..<6 {
            after(chance.int64(0...2 * spreading)) { [self] in
                for process in chance.coin() ? running(device) : others(than: device) {
                    guard chance.coin() else { continue }
                    chance.coin()
                        ? process.app.changeByRule(process)
                        : process.app.set(plainKey(), padding: 0, process)
                }
            }
        }
    }

    // MARK: - News that a device has missed

    /// The server refuses the successor of a write that it has acknowledged and no stream has
    /// brought.
    private func lowerLimitsUnheard(by device: SimulatedDevice) {
        for stream in streams(of: device) { stream.goSilent() }
        let key = plainKey()
        for process in running(device).prefix(1) { process.app.set(key, padding: 0, process) }
        after(2 * spreading) { [self] in
            guard !isPeaceful else { return }
            server.limits.storeBytesMax = 1
            for process in running(device).prefix(1) { process.app.set(key, padding: 40, process) }
            after(2 * spreading) { [self] in changeLimits() }
        }
    }

    /// A device does not receive an acknowledgement, and the server finds its next write in the
    /// future.
    private func setClockBackUnheard(by device: SimulatedDevice) {
        for stream in streams(of: device) { stream.goSilent() }
        run.certain[.answerLost, default: [:]][device.number] = now + 2 * spreading
        let key = plainKey()
        for process in running(device).prefix(1) { process.app.set(key, padding: 0, process) }
        after(2 * spreading + 1_000) { [self] in
            setServerClockBack()
            for process in running(device).prefix(1) { process.app.set(key, padding: 0, process) }
        }
    }

    /// A machine restarts offline with a value from before the server's clock was set back, and
    /// overwrites it.
    private func setClockBackUnseen(by device: SimulatedDevice) {
        let keys = [plainKey(), plainKey()]
        for process in running(device).prefix(1) { process.app.write(each: keys, process) }
        after(spreading) { [self] in
            guard !isPeaceful else { return }
            setServerClockBack()
            device.crash()
            device.goOffline()
            start(device)
            for process in running(device).prefix(1) { process.app.write(each: keys, process) }
        }
        after(2 * spreading) { device.goOnline() }
    }

    private func setServerClockBack() {
        if isPeaceful { return }
        server.clockError -= chance.int64(120_000...600_000)
        noteClocks()
    }

    /// The server's time reaches a device late, and the device then writes after another one
    /// without having received that write.
    private func measureLate(_ device: SimulatedDevice) {
        let keys = [plainKey(), plainKey()]
        run.certain[.slowAnswer, default: [:]][device.number] = now + 1_000 + spreading
        for process in running(device).prefix(1) { process.app.write(each: keys, process) }
        let heard = 20_000 + 2 * spreading
        after(heard) { [self] in
            for stream in streams(of: device) { stream.goSilent() }
            for process in others(than: device) { process.app.write(each: keys, process) }
        }
        after(heard + scenario.timeTolerance + 100) { [self] in
            for process in running(device).prefix(1) { process.app.write(each: keys, process) }
        }
    }

    /// A proxy holds back a stream's messages and delivers them when the stream ends, after polls
    /// have brought newer ones.
    private func endBuffered(_ device: SimulatedDevice) {
        let keys = [plainKey(), plainKey()]
        for round in 0..<3 {
            after(Int64(round) * (spreading + 2_000)) { [self] in
                for process in others(than: device) { process.app.write(each: keys, process) }
            }
        }
        after(4 * (spreading + 2_000)) { [self] in
            if isPeaceful { return }
            for stream in streams(of: device) {
                stream.breakOff(nil)
                server.unsubscribe(stream)
            }
        }
    }

    /// A new machine on which an app writes before the first download.
    private func beginAnew(_ other: SimulatedDevice) {
        guard devices.count < 10 else { return }
        for process in running(other) { process.app.work(process) }
        after(spreading + scenario.timeTolerance) { [self] in
            guard !isPeaceful else { return }
            let device = join(other.account)
            for process in running(device) {
                process.app.putAndClear(process)
                process.app.work(process)
            }
            after(spreading) { device.goOnline() }
        }
    }

    /// A person signs in to an earlier account whose files are temporarily unreadable.
    private func signInUnreadable(_ device: SimulatedDevice) {
        guard let account = device.account else { return }
        device.signIn(account % scenario.accounts + 1)
        after(spreading) { [self] in
            guard !isPeaceful else { return }
            device.setUnreadable(true)
            device.signIn(account)
            after(spreading) { device.setUnreadable(false) }
        }
    }

    // MARK: - Large writes

    /// More than a slow line transfers within the server's timeout.
    private func writeAll(_ device: SimulatedDevice) {
        for process in running(device).prefix(1) {
            for key in scenario.plainKeys { process.app.set(key, padding: 40, process) }
        }
    }

    /// A machine that is offline from the beginning. Its apps write, and its clock is set.
    func beginOffline() {
        guard scenario.faults.contains(.partition) else { return }
        let device = chance.pick(devices)
        device.goOffline()
        after(chance.interval(mean: 4 * scenario.workInterval)) { [self] in
            guard !isPeaceful, scenario.faults.contains(.clockJump) else { return }
            device.clock.error += chance.int64(-7_200_000...7_200_000)
            noteClocks()
        }
        after(chance.interval(mean: 8 * scenario.workInterval)) { device.goOnline() }
    }
}
