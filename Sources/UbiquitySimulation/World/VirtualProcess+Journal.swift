// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Reports to the journal.
extension VirtualProcess {
    /// The app's observers are called a little later.
    func notify(_ notice: Notice) {
        posting = notice
        world.after(world.chance.int64(0...world.scenario.flushMax)) { [self] in
            whenRunning { [self] in post(notice) }
        }
    }

    private func post(_ notice: Notice) {
        var values: [Key: PropertyListValue?] = [:]
        for key in notice.keys { values[key] = .some(engine[key]) }
        world.journal.note(.notified(process: number, notice, values))
        app.notified(notice, self)
        posting = nil
        receive(.engine(.notified))
    }

    /// Passes an event to the engine and reports changes that are visible to the app.
    /// - Parameter refused: Keys reported even without a visible difference: deletions of what the
    ///   server never had.
    func handle(_ event: Driver.Event, refused: Set<Key> = []) {
        let cause = Observation.Cause(event, engine)
        defer { noteRecords(cause) }
        guard let cause else { return driver.handle(event, at: device.reading) }
        let before = engine.values
        let withdrawn = Set(refused.intersection(engine.ownRecords).map(\.whole))
        driver.handle(event, at: device.reading)
        noteChanges(from: before, cause, besides: withdrawn)
    }

    func noteChanges(
        from before: [Key: PropertyListValue], _ cause: Observation.Cause,
        besides withdrawn: Set<Key> = []
    ) {
        let after = engine.values
        var changed = withdrawn.union(before.keys.filter { before[$0] != after[$0] })
        for key in after.keys where before[key] == nil { changed.insert(key) }
        isChanged = true
        if !changed.isEmpty { world.journal.note(.changed(process: number, changed, cause)) }
    }

    func noteRest() {
        if !engine.isSaved, engine.diskFailure == nil {
            world.journal.note(.restedUnsaved(process: number))
        }
        guard isChanged, engine.notices.isEmpty else { return }
        isChanged = false
        world.journal.note(.rested(process: number, values: engine.values))
    }

    func noteReceived(_ cursor: Cursor) {
        // The engine only claims to have what it resumes from.
        guard engine.meta.cursor == cursor, let position = Position(cursor), let address else {
            return
        }
        world.journal.note(
            .received(
                process: number, address.store, position, values: engine.contents,
                own: engine.ownRecords.union(engine.setAsideRecords)))
    }

    /// Reports the writes that the first download discards, on keys that the server has.
    func noteDiscards(_ changes: ChangeSet, by event: SyncEngine.Event) {
        guard changes.isWhole, !engine.hasToldFirstSync,
            world.scenario.firstSync == .serverWins
        else { return }
        var after = engine
        after.handle(event, at: device.reading)
        guard after.meta.hasCompletedFirstSync else { return }
        let keys = Set(changes.records.map(\.key)).filter {
            world.mergedKeys[$0.whole] == nil
        }
        // Of a key whose writes merge, an app without its policy may have made a plain write.
        let plain = engine.ownRecords.subtracting(after.ownRecords).filter { !$0.isPart }
        world.journal.note(.discarded(disk: disk.name, keys.union(plain)))
    }
}

extension Observation.Cause {
    /// The reason the app may see a change after this event; nil if it may not.
    fileprivate init?(_ event: Driver.Event, _ engine: borrowing SyncEngine) {
        switch event {
        case .engine(.streamReceived(_, .changes(let changes))),
            .engine(.pulled(_, let changes)):
            self = changes.isWhole && !engine.hasToldFirstSync ? .firstDownload : .server
        // Stamps become final, and some writes turn out to be older than the server's.
        case .engine(.streamReceived), .engine(.pushFailed): self = .server
        case .engine(.saveConflicted), .fileRead: self = .otherProcess
        case .engine(.pushAnswered): self = .answer
        default: return nil
        }
    }
}
