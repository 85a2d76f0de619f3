// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Carries out the driver's steps in virtual time.
extension VirtualProcess {
    func perform(_ step: Driver.Step, _ before: [Key: PropertyListValue]) {
        switch step {
        case .effect(.save(let batch)): save(batch)
        case .effect(let effect): perform(effect)
        case .read(let version): read(after: version)
        case .readAccount:
            if !device.isAccountUnreadable { noteSealedAccounts() }
            handle(
                device.isAccountUnreadable
                    ? .accountUnreadable("it cannot be read") : .accountRead(device.state))
        case .noteSealed(let account):
            guard !device.isAccountUnreadable else {
                return handle(.accountUnreadable("it cannot be written"))
            }
            device.noteSealed(account)
            handle(.accountRead(device.state))
        case .connect(let account, let device, let generation):
            self.generation = generation
            address = Int(account.account).map {
                (StoreReference(account: $0, store: store), device)
            }
        case .open(let folder): open(folder)
        case .release: opened = nil
        case .use: turn(before)
        case .synchronized(let isSaved):
            let waiting = synchronizing
            synchronizing = []
            for done in waiting { done(isSaved) }
        case .decide, .report, .close: break
        }
    }

    private func noteSealedAccounts() {
        knowsSealed.formUnion(device.state.sealedAccounts.compactMap { Int($0.string) })
    }

    private func perform(_ effect: SyncEngine.Effect) {
        switch effect {
        case .save: break
        case .notify(let notice): notify(notice)
        case .finishSync(let id, let failure): app.finished(id, failure, self)
        case .listen(let stream, let cursor, let isSaved):
            listen(stream, since: cursor, isSaved)
        case .hangUp(let stream): streams.removeValue(forKey: stream)?.hangUp()
        case .push(let number, let push): self.push(number, push)
        case .pull(let number, let cursor, let isSaved, let withConfig):
            pull(number, since: cursor, isSaved, withConfig)
        }
    }

    // MARK: - Files

    private func read(after version: Int64) {
        if disk.isUnreadable { return handle(.fileUnreadable("a bad sector")) }
        handle(.fileRead(disk.version == version ? nil : disk.changes(after: version)))
    }

    private func open(_ folder: String) {
        let disk = device.disk(store, folder: folder)
        if disk.isUnreadable { return handle(.unopened("a bad sector")) }
        opened = disk
        handle(.opened(disk.changes(after: -1)))
    }

    private func turn(_ before: [Key: PropertyListValue]) {
        let isNew = driver.folder != disk.name.folder
        disk.close(by: self)
        disk = opened ?? device.disk(store, folder: driver.folder)
        isOpen = opened != nil
        (opened, address) = (nil, nil)
        noteChanges(from: before, isNew ? .account : .otherProcess)
        turnRules(isOther: isNew)
        if isNew {
            world.journal.note(.moved(process: number, disk.name))
            app.turn()
        }
        if isOpen { disk.open(by: self) }
    }

    private func save(_ batch: SaveBatch) {
        saving = batch
        if let body = duringSave {
            duringSave = nil
            world.after(world.chance.int64(0...world.scenario.flushMax), body)
        }
        endSave()
    }

    func endSave() {
        world.after(world.chance.int64(0...world.scenario.flushMax)) { [self] in
            whenRunning { [self] in
                guard let batch = saving else { return }
                saving = nil
                finishSave(batch)
                run()
            }
        }
    }

    private func finishSave(_ batch: SaveBatch) {
        if let failure = saveFailure { return handle(.engine(.saveFailed(failure))) }
        switch keep(batch) {
        case .saved(let version):
            if !batch.refused.isEmpty {
                world.journal.note(.withdrawn(disk: disk.name, batch.refused.map(\.record)))
            }
            signalCommit()
            let isLost = losesSaveAnswer
            losesSaveAnswer = false
            handle(.engine(isLost ? .saveFailed("the flush failed") : .saved(version: version)))
        case .conflict where disk.isUnreadable: handle(.engine(.saveFailed("a bad sector")))
        case .conflict(let changes): handle(.engine(.saveConflicted(changes)))
        }
    }

    /// Writes the batch to the disk.
    func keep(_ batch: SaveBatch) -> SaveOutcome {
        let outcome = disk.save(batch)
        if case .saved = outcome {
            let cursor = disk.content.saved.meta.cursor
            world.journal.note(.saves(process: number, batch.entries, cursor))
        }
        return outcome
    }

    private var saveFailure: String? {
        if !isOpen { return "the file is not open" }
        if disk.isFull { return "the disk is full" }
        return disk.writer.map { _ in "the file is locked" }
    }

    func signalCommit() {
        for process in disk.processes where process !== self {
            world.after(world.chance.int64(0...5)) { process.lookAtDisk() }
        }
    }
}
