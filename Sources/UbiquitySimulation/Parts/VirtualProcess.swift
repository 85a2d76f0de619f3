// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// One process with one store: the engine and the driver that ship, in virtual time. It decides nothing.
final class VirtualProcess: VirtualProgram {
    let number: Int
    unowned let device: SimulatedDevice
    let store: Int
    unowned let world: World
    private var driver: Driver
    private(set) var disk: VirtualDisk
    /// The one that was opened last.
    private var opened: VirtualDisk?
    private(set) var isAlive = true
    let app: App
    private var saving: SaveBatch?
    /// What is to happen to it during its next save.
    private var fault: (() -> Void)?
    private var synchronizing: [(Bool) -> Void] = []
    private var wakes = 0
    private var streams: [Int: VirtualStream] = [:]
    /// Where the link goes.
    private var address: (store: StoreName, device: DeviceID)?
    private var isChanged = true

    init(device: SimulatedDevice, store: Int, world: World) {
        number = world.newProcessNumber()
        self.device = device
        self.store = store
        self.world = world
        disk = device.disk(store, folder: device.state.folder)
        var settings = SyncEngine.Settings()
        settings.firstSync = world.scenario.firstSync
        settings.key = world.scenario.limits.key
        driver = Driver(
            content: disk.changes(after: -1), device: device.state, settings: settings,
            seed: world.chance.number(), at: device.reading)
        app = App(world: world)
        world.journal.note(.opened(process: number, disk: disk.name, values: engine.values))
        disk.open(by: self)
        schedule()
        app.start(self)
    }

    var engine: SyncEngine { _read { yield driver.engine } }

    // MARK: - For the app

    func write(_ changes: [Key: Content]) throws(LimitViolation) {
        defer { schedule() }
        try driver.engine.write(changes, at: device.reading)
    }

    func propose(_ proposal: Proposal, _ key: Key) throws(LimitViolation) {
        defer { schedule() }
        try driver.engine.write([:], merging: [key: proposal], at: device.reading)
    }

    /// What `synchronize()` does; it calls back when it returns.
    func synchronize(_ done: @escaping (Bool) -> Void) {
        synchronizing.append(done)
        tell(.synchronize)
    }

    func requestSync() -> Int {
        defer { schedule() }
        return driver.engine.requestSync(at: device.reading)
    }

    // MARK: - For those around it

    func getLead(of disk: VirtualDisk) {
        if disk === self.disk { tell(.leading(file: driver.file, true)) }
    }

    func lookAtDisk() { tell(.fileSignalled) }

    func followDevice() { tell(.accountSignalled) }

    func received(_ message: StreamMessage, on stream: Int) {
        guard isAlive else { return }
        // Before the engine knows, for what it discards is to be noted.
        noteDiscards(message, on: stream)
        handle(.engine(.streamReceived(stream, message)))
        noteReceived(message)
        schedule()
    }

    func streamEnded(_ stream: Int, _ failure: LinkFailure?) {
        streams[stream] = nil
        tell(.engine(.streamEnded(stream, failure)))
    }

    func cutStream() {
        for stream in openStreams { world.chance.coin() ? stream.cut() : stream.goSilent() }
    }

    var isConnected: Bool { engine.status.link.state == .connected }

    var openStreams: [VirtualStream] { streams.values.sorted { $0.id < $1.id } }

    /// Ends without a word. The save under way is on the disk, or is not.
    func kill() {
        if let saving, world.chance.coin(), !disk.isFull {
            if case .saved = disk.save(saving) { ringBell() }
        }
        isAlive = false
        for stream in openStreams { stream.hangUp() }
        streams = [:]
        disk.close(by: self)
        world.journal.note(.ended(process: number))
    }

    /// Its streams and its disk hold it, and it them.
    func letGo() {
        streams = [:]
        disk.forget(self)
        fault = nil
    }

    /// Has something happen to it during its next save, or just after.
    func whileSaving(_ fault: @escaping () -> Void) { self.fault = fault }

    // MARK: - The driver's steps

    private func tell(_ event: Driver.Event) {
        guard isAlive else { return }
        handle(event)
        schedule()
    }

    private func schedule() {
        guard isAlive, driver.schedule() else { return }
        world.after(0) { [self] in run() }
    }

    private func run() {
        guard isAlive else { return }
        while let (step, before) = next() { perform(step, before) }
        guard !driver.isBusy else { return }
        noteRest()
        scheduleWake()
    }

    /// - Returns: With what the app saw before, if the step turns to another account.
    private func next() -> (Driver.Step, before: [Key: PropertyListValue])? {
        let before = driver.isLeaving ? engine.values : [:]
        return driver.next(at: device.reading).map { ($0, before) }
    }

    private func scheduleWake() {
        wakes += 1
        guard let wake = driver.nextWake else { return }
        let number = wakes
        world.at(max(device.clock.moment(ofUptime: wake), world.now + 1)) { [self] in
            if number == wakes { run() }
        }
    }

    private func perform(_ step: Driver.Step, _ before: [Key: PropertyListValue]) {
        switch step {
        case .effect(.save(let batch)): save(batch)
        case .effect(let effect): perform(effect)
        case .read(let version):
            handle(.fileRead(disk.version == version ? nil : disk.changes(after: version)))
        case .readAccount: handle(.accountRead(device.state))
        case .connect(let account, let device):
            address = Int(account.account).map { (StoreName(account: $0, store: store), device) }
        case .open(let folder):
            let disk = device.disk(store, folder: folder)
            opened = disk
            handle(.opened(disk.changes(after: -1)))
        case .letGo: opened = nil
        case .use: turn(before)
        case .synchronized(let isSaved):
            let waiting = synchronizing
            synchronizing = []
            for done in waiting { done(isSaved) }
        case .report, .close: break
        }
    }

    private func turn(_ before: [Key: PropertyListValue]) {
        disk.close(by: self)
        if let opened { disk = opened }
        (opened, address) = (nil, nil)
        noteChanges(from: before, .account)
        world.journal.note(.moved(process: number, disk.name))
        app.turn()
        disk.open(by: self)
    }

    private func save(_ batch: SaveBatch) {
        saving = batch
        if let fault {
            self.fault = nil
            world.after(world.chance.int64(0...world.scenario.flushMax), fault)
        }
        world.after(world.chance.int64(0...world.scenario.flushMax)) { [self] in
            guard isAlive else { return }
            saving = nil
            finishSave(batch)
            run()
        }
    }

    private func finishSave(_ batch: SaveBatch) {
        if disk.isFull { return handle(.engine(.saveFailed("the disk is full"))) }
        world.journal.note(.saves(process: number, batch.entries))
        switch disk.save(batch) {
        case .saved(let version):
            handle(.engine(.saved(version: version)))
            if !batch.refused.isEmpty {
                world.journal.note(
                    .withdrawn(disk: disk.name, batch.refused.map(\.record)))
            }
            ringBell()
        case .conflict(let changes): handle(.engine(.saveConflicted(changes)))
        }
    }

    private func ringBell() {
        for process in disk.processes where process !== self {
            world.after(world.chance.int64(0...5)) { process.lookAtDisk() }
        }
    }

    private func perform(_ effect: SyncEngine.Effect) {
        switch effect {
        case .save: break
        case .notify(let notice): notify(notice)
        case .finishSync(let id, let failure): app.finished(id, failure, self)
        case .listen(let stream, let cursor): listen(stream, since: cursor)
        case .hangUp(let stream): streams.removeValue(forKey: stream)?.hangUp()
        case .push(let number, let push): self.push(number, push)
        case .pull(let number, let cursor): pull(number, since: cursor)
        }
    }

    private func notify(_ notice: Notice) {
        var values: [Key: PropertyListValue?] = [:]
        for key in notice.keys { values[key] = .some(engine[key]) }
        world.journal.note(.told(process: number, notice, values))
    }

    // MARK: - The transport

    private func listen(_ number: Int, since cursor: Cursor?) {
        guard let address else { return }
        world.journal.note(.opensStream(process: self.number))
        let stream = VirtualStream(
            number: number, listener: self, store: address.store, device: address.device,
            world: world)
        streams[number] = stream
        world.network.request(on: device) {
            [world] (reply: (Result<Void, LinkFailure>) -> Void) in
            world.server.open(stream, since: cursor)
            reply(.success(()))
        } done: { result in
            if case .failure(let failure) = result { stream.breakOff(failure) }
        }
    }

    private func push(_ number: Int, _ push: Push) {
        guard let address else { return }
        let unsaved = push.transactions.flatMap(\.writes).filter { !disk.everHad($0) }
        world.journal.note(
            .pushes(process: self.number, push, unsaved: Set(unsaved.map(\.key))))
        world.network.request(on: device) { [world] reply in
            world.server.push(push, to: address.store, by: address.device, reply: reply)
        } done: { [self] (result: Result<PushAnswer, LinkFailure>) in
            switch result {
            case .success(let answer): answered(number, push, answer)
            case .failure(let failure): tell(.engine(.pushFailed(number, failure)))
            }
        }
    }

    private func answered(_ number: Int, _ push: Push, _ answer: PushAnswer) {
        guard isAlive else { return }
        handle(.engine(.pushAnswered(number, answer)), refused: answer.refusedKeys(of: push))
        schedule()
    }

    private func pull(_ number: Int, since cursor: Cursor?) {
        guard let address else { return }
        world.network.request(on: device) {
            [world] (reply: (Result<ChangeSet, LinkFailure>) -> Void) in
            reply(world.server.pull(address.store, since: cursor, by: address.device))
        } done: { [self] result in
            switch result {
            case .success(let changes): tell(.engine(.pulled(number, changes)))
            case .failure(let failure): tell(.engine(.pullFailed(number, failure)))
            }
        }
    }

    // MARK: - For the journal

    /// Tells the engine, and looks what the app would see change.
    /// - Parameter refused: What the app is told of also where it shows no difference: the deletion
    ///   of what the server never had.
    private func handle(_ event: Driver.Event, refused: Set<Key> = []) {
        let cause = Observation.Cause(event, engine)
        guard let cause else { return driver.handle(event, at: device.reading) }
        let before = engine.values
        let withdrawn = Set(refused.intersection(engine.ownRecords).map(\.whole))
        driver.handle(event, at: device.reading)
        noteChanges(from: before, cause, besides: withdrawn)
    }

    private func noteChanges(
        from before: [Key: PropertyListValue], _ cause: Observation.Cause,
        besides withdrawn: Set<Key> = []
    ) {
        let after = engine.values
        var changed = withdrawn.union(before.keys.filter { before[$0] != after[$0] })
        for key in after.keys where before[key] == nil { changed.insert(key) }
        isChanged = true
        if !changed.isEmpty { world.journal.note(.changed(process: number, changed, cause)) }
    }

    private func noteRest() {
        guard isChanged else { return }
        isChanged = false
        world.journal.note(.rested(process: number, values: engine.values))
    }

    private func noteReceived(_ message: StreamMessage) {
        let cursor: Cursor
        switch message {
        case .changes(let changes): cursor = changes.cursor
        case .ready(let ready, _): cursor = ready
        case .resync: return
        }
        // What the engine does not resume from, it does not claim to have.
        guard engine.meta.cursor == cursor, let position = Position(cursor), let address else {
            return
        }
        world.journal.note(
            .received(
                process: number, address.store, position, values: engine.contents,
                own: engine.ownRecords))
    }

    /// What waits when the first download comes, on keys that the server has.
    private func noteDiscards(_ message: StreamMessage, on stream: Int) {
        guard streams[stream] != nil, case .changes(let changes) = message, changes.isWhole,
            !engine.meta.hasCompletedFirstSync, world.scenario.firstSync == .serverWins
        else { return }
        world.journal.note(.discarded(disk: disk.name, Set(changes.records.map(\.key))))
    }
}

extension VirtualProcess: VirtualDiskUser, VirtualListener {
    var line: any VirtualLine { device }
}

extension PushAnswer {
    /// The keys of the transactions that the server refused.
    fileprivate func refusedKeys(of push: Push) -> Set<Key> {
        let refused = zip(push.transactions, results).filter { _, result in
            if case .refused = result { true } else { false }
        }
        return Set(refused.flatMap { $0.0.writes.map(\.key) })
    }
}

extension Observation.Cause {
    /// Why the app may see something else after this event; nil: it may not.
    fileprivate init?(_ event: Driver.Event, _ engine: borrowing SyncEngine) {
        switch event {
        case .engine(.streamReceived(_, .changes(let changes))):
            self = changes.isWhole && !engine.meta.hasCompletedFirstSync ? .firstDownload : .server
        // Stamps become final, and some writes turn out to be older than what the server has.
        case .engine(.pulled), .engine(.streamReceived), .engine(.pushFailed): self = .server
        case .engine(.saveConflicted), .fileRead: self = .otherProcess
        case .engine(.pushAnswered): self = .answer
        default: return nil
        }
    }
}
