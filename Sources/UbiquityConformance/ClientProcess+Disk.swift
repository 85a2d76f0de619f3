// SPDX-License-Identifier: Apache-2.0

import UbiquityCore
import UbiquitySimulation

/// What a process shares with the others of its device: the disk and the lease.
extension ClientProcess {
    /// Which processes have the device's disk open. What it has only the client knows.
    var file: VirtualDisk {
        device.disk(ConformanceWorld.store, folder: device.state.folder)
    }

    // MARK: - Standing still

    var isStopped: Bool { missed != nil }

    /// Pauses the process. It keeps its lease and its connections.
    func stop(for milliseconds: Int64) {
        guard isAlive, missed == nil, !world.isPeaceful else { return }
        missed = ([], world.now)
        world.after(milliseconds) { [self] in goOn() }
        if world.chance.coin() { loseLease() }
    }

    /// Another process gets the lease, and this one only hears of it when it goes on.
    private func loseLease() {
        guard isLeading, file.processes.count > 1 else { return }
        file.close(by: self)
        file.open(by: self)
    }

    func goOn() {
        guard let (work, since) = missed else { return }
        missed = nil
        world.note(.paused(device: device.number, milliseconds: world.now - since))
        for body in work { whenRunning(body) }
        // It believes to lead until it is told.
        world.after(world.chance.pick([0, world.chance.int64(0...5_000)])) { [self] in
            whenRunning { [self] in if isLeading, file.processes.first !== self { lead(false) } }
        }
    }

    /// Runs the closure now, or when the process goes on, or never if it has ended.
    func whenRunning(_ body: @escaping () -> Void) {
        guard isAlive else { return }
        if missed == nil { body() } else { missed?.work.append(body) }
    }

    private func lead(_ leads: Bool) {
        noteLeading(leads)
        tell(.leading(leads), .otherProcess)
    }

    func noteLeading(_ leads: Bool) {
        isLeading = leads
        world.note(.leads(process: number, leads))
    }

    // MARK: - The disk

    func save() {
        guard saving == nil, !isReading else {
            return world.complain("device \(device.number) saves while it is saving or reading")
        }
        saving = world.run.lastWrite
        let hasFirstSync = state.cursor != nil
        if let milliseconds = stopsInSave {
            stopsInSave = nil
            stop(for: milliseconds)
        }
        afterFlush { [self] in
            guard let last = saving else { return }
            saving = nil
            let failure = takeDiskFailure()
            tell(failure.map { .notSaved($0) } ?? .saved) { [self] _, answer in
                // A disk that takes nothing can still be read: another version is there.
                let isRefused = (failure?.isRefusal ?? false) && !answer.isConflict
                world.note(.endedSave(process: number, isRefused: isRefused))
                if answer.isConflict { return noteRead() }
                if failure == .replaced {
                    for process in device.processes { process.mayHaveLostFile = true }
                }
                startAgainLater()
                if state.diskError != nil, failure != .late { return }
                savedThrough = last
                hint()
                // Of a save that came late, the client does not know.
                guard state.diskError == nil else { return }
                if hasFirstSync { world.firstSyncs.insert(device.number) }
                if lastWrite <= last { world.note(.synchronized(process: number)) }
            }
        }
    }

    private func startAgainLater() {
        guard mayHaveLostFile, state.diskError != nil else { return }
        world.after(world.isPeaceful ? 1_000 : world.absence()) { [self] in startAgainIfLost() }
    }

    /// Starts the process again if its file is not the device's any more, which it says.
    func startAgainIfLost() {
        guard isAlive, mayHaveLostFile, state.diskError != nil else { return }
        device.kill(self)
        world.launch(place, on: device)
    }

    /// What a save meets now; nil if the disk works.
    private func takeDiskFailure() -> DiskFailure? {
        if isDiskClosed { return .closed }
        guard let (how, until) = diskFailure else { return nil }
        if world.now >= until { diskFailure = nil }
        return how
    }

    func read() {
        guard saving == nil, !isReading else {
            return world.complain("device \(device.number) reads while it is saving or reading")
        }
        isReading = true
        afterFlush { [self] in
            isReading = false
            tell(.read(!isDiskClosed), .otherProcess) { [self] _, _ in
                // What the disk refused may be somebody else's by now.
                if !isDiskClosed { world.note(.endedSave(process: number, isRefused: false)) }
                startAgainLater()
                noteRead()
            }
        }
    }

    private func afterFlush(_ body: @escaping () -> Void) {
        world.after(world.chance.int64(0...world.scenario.flushMax)) { [self] in
            whenRunning(body)
        }
    }

    /// Tells the other processes that one has saved: most at once, some late, and some twice. And
    /// at times itself.
    func hint() {
        guard world.hasProcesses else { return }
        for process in file.processes where process !== self || world.chance.perMille(100) {
            for _ in 0...(world.chance.perMille(100) ? 1 : 0) {
                let isLate = !world.isPeaceful && world.chance.perMille(100)
                world.after(world.chance.int64(0...(isLate ? 2_000 : 5))) { process.lookAtDisk() }
            }
        }
    }

    /// The keys of a push whose writes cannot be on the disk yet. Deletions have no mark.
    func unsaved(_ push: Push) -> Set<Key> {
        Set(
            push.transactions.flatMap(\.writes).filter { write in
                guard world.mergedKeys[write.key.whole] == nil,
                    let mark = Mark(write.content.value)
                else { return false }
                // Another process's writes come from the disk.
                let author = world.journal.history.writes[mark.number]?.process
                return author == number && mark.number > savedThrough
            }.map(\.key))
    }

    /// What another process has saved with a cursor is complete up to it.
    private func noteRead() { if let cursor = state.cursor { noteReceived(cursor) } }
}

extension ClientProcess: VirtualDiskUser {
    /// A system grants a lock a little later.
    func becomeLeader(of disk: VirtualDisk) {
        world.after(world.chance.int64(0...5)) { [self] in
            whenRunning { [self] in
                if file.processes.first === self { lead(true) }
            }
        }
    }

    func lookAtDisk() { whenRunning { [self] in tell(.fileChanged, .otherProcess) } }
}
