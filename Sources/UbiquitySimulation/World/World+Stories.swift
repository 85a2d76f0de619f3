// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Faults that do harm only one after the other, with what apps do in between.
extension World {
    /// Tells one of the stories of which this run has the faults, after some time, and then the next.
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
        if faults.contains(.forgetDeletions) { stories.append(missRemovals) }
        if faults.contains(.forgetDeletions), faults.contains(.duplicate) {
            stories.append(repeatForgotten)
        }
        if mergedKeys.values.contains(.counter) { stories += storiesOfCounters }
        if faults.contains(.limitsChange) { stories.append(lowerLimitsUnheard) }
        if faults.contains(.slowAnswer) { stories.append(measureLate) }
        if faults.contains(.serverClockJump) {
            stories += [setClockBackUnheard, setClockBackUnseen]
        }
        if faults.contains(.diskUnreadable), scenario.accounts > 1 {
            stories.append(signInUnreadable)
        }
        if faults.contains(.serverClockWeeks) { stories.append(forgetAfterJump) }
        if scenario.slowest != nil { stories.append(writeAll) }
        if scenario.qualities.contains(where: \.isBuffering) { stories.append(endBuffered) }
        return stories
    }

    /// How long a write takes to be everywhere, at most, where nothing goes wrong.
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

    // MARK: - Removals that are forgotten

    /// A machine is away, and its apps write over what others had written; those remove it meanwhile, and
    /// the server forgets that.
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
            server.forgetDeletions(
                by: ForgettingRule(
                    rememberedMilliseconds: 20_000, liveMilliseconds: 0, deletionsMax: 0))
            after(chance.coin() ? 0 : absence()) { device.goOnline() }
        }
    }

    /// The network repeats a push, of which others have removed all meanwhile, and the server has forgotten
    /// that.
    private func repeatForgotten(_ device: SimulatedDevice) {
        let keys = [plainKey(), plainKey()]
        certain[.duplicate, default: [:]][device.number] = now + spreading
        for process in running(device) { process.app.write(each: keys, process) }
        after(spreading) { [self] in
            for process in devices.flatMap(running) { process.app.remove(each: keys, process) }
        }
        after(2 * spreading) { [self] in
            if isPeaceful { return }
            server.forgetDeletions(
                by: ForgettingRule(
                    rememberedMilliseconds: 20_000, liveMilliseconds: 0, deletionsMax: 0))
        }
    }

    /// Something was just removed when the server's clock is set wrong by weeks.
    private func forgetAfterJump(_ device: SimulatedDevice) {
        let key = plainKey()
        for process in running(device) { process.app.write(each: [key], process) }
        for process in running(device) { process.app.remove(each: [key], process) }
        after(spreading) { [self] in
            guard !isPeaceful else { return }
            setServerClockWrong()
            noteClocks()
            for process in running(device) { process.app.write(each: [key], process) }
        }
        after(2 * spreading) { [self] in server.forgetDeletions() }
    }

    // MARK: - What a device has not heard

    /// The server refuses what replaces a write that it has answered, and that no stream has brought back.
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

    /// A device does not hear that the server has taken a write, and what it writes next the server finds in
    /// its future.
    private func setClockBackUnheard(by device: SimulatedDevice) {
        for stream in streams(of: device) { stream.goSilent() }
        certain[.answerLost, default: [:]][device.number] = now + 2 * spreading
        let key = plainKey()
        for process in running(device).prefix(1) { process.app.set(key, padding: 0, process) }
        after(2 * spreading + 1_000) { [self] in
            setServerClockBack()
            for process in running(device).prefix(1) { process.app.set(key, padding: 0, process) }
        }
    }

    /// A machine that starts again, offline, has something from before the server's clock was set back, and
    /// writes over it.
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

    /// The server's time comes late to a device, which then writes after another one, and has not heard that.
    private func measureLate(_ device: SimulatedDevice) {
        let keys = [plainKey(), plainKey()]
        certain[.slowAnswer, default: [:]][device.number] = now + 1_000 + spreading
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

    /// A proxy has kept back what a stream brought, and gives it when the stream ends: what polls brought
    /// meanwhile is newer.
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
                server.forget(stream)
            }
        }
    }

    /// A new machine on which an app does something before it gets what there is.
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

    /// Somebody comes back whose files cannot be opened for a while.
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

    // MARK: - At once

    /// More than a slow line transfers in the time that a server has for it.
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
