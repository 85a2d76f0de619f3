// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// One process with one store: the engine that ships, and a driver that carries out what it says,
/// as the library's does. It decides nothing.
final class VirtualProcess: VirtualProgram {
    let number: Int
    unowned let device: SimulatedDevice
    let store: Int
    unowned let world: World
    private(set) var engine: SyncEngine
    private(set) var disk: VirtualDisk
    private(set) var isAlive = true
    let app: App

    /// The driver's queue: what is to be done after the save that is under way.
    private var work: [() -> Void] = []
    private var saving: SaveBatch?
    /// What is to happen to it during its next save.
    private var fault: (() -> Void)?
    private var isDrainScheduled = false
    private var wakes = 0
    private var streams: [Int: VirtualStream] = [:]
    /// Who is signed in, as far as this process has heard.
    private var signedIn: SignedInAccount?
    private var wanted: DeviceState?
    private var move: (disk: VirtualDisk, discardsUnsaved: Bool)?
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
        engine = SyncEngine(
            disk: disk.changes(after: -1), settings: settings, seed: world.chance.number(),
            at: device.reading)
        app = App(world: world)
        noteOpened()
        disk.open(by: self)
        followDevice()
        app.start(self)
    }

    private func noteOpened() {
        world.journal.note(.opened(process: number, disk: disk.name, values: engine.values))
    }

    // MARK: - For the app

    func write(_ changes: [Key: Content]) throws(LimitViolation) {
        defer { scheduleDrain() }
        try engine.write(changes, at: device.reading)
    }

    func propose(_ proposal: Proposal, _ key: Key) throws(LimitViolation) {
        defer { scheduleDrain() }
        try engine.write([:], merging: [key: proposal], at: device.reading)
    }

    /// What `synchronize()` does; it calls back when it returns.
    func synchronize(_ done: @escaping (Bool) -> Void) {
        enqueue { [self] in
            refresh()
            handle(.hurry)
            drain { [self] in done(engine.isSaved && engine.diskFailure == nil) }
        }
    }

    func requestSync() -> Int {
        defer { scheduleDrain() }
        return engine.requestSync(at: device.reading)
    }

    // MARK: - For those around it

    func getLead(of disk: VirtualDisk) {
        enqueue { [self] in
            guard self.disk === disk else { return }
            refresh()
            handle(.leading(true))
            drain()
        }
    }

    func lookAtDisk() {
        enqueue { [self] in
            refresh()
            drain()
        }
    }

    func received(_ message: StreamMessage, on stream: Int) {
        guard isAlive else { return }
        // Before the engine knows, for what it discards is to be noted.
        noteDiscards(message, on: stream)
        handle(.streamReceived(stream, message))
        noteReceived(message)
        scheduleDrain()
    }

    func streamEnded(_ stream: Int, _ failure: LinkFailure?) {
        streams[stream] = nil
        tell(.streamEnded(stream, failure))
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

    // MARK: - The device's sign-in

    func followDevice() {
        guard isAlive else { return }
        follow(device.state)
    }

    private func follow(_ state: DeviceState) {
        guard wanted == nil else { return wanted = state }
        if state.folder == disk.name.folder {
            signIn(state.signedIn)
        } else {
            turn(to: state)
        }
    }

    private func signIn(_ account: SignedInAccount?) {
        defer { signedIn = account }
        guard signedIn != account else { return }
        guard let account, let name = DeviceID(account.device) else { return tell(.signedOut) }
        tell(.signedIn(account: account.account, device: name))
    }

    private func turn(to state: DeviceState) {
        wanted = state
        let old = disk.name.folder
        enqueue { [self] in
            move = (
                device.disk(store, folder: state.folder), !device.state.folders.values.contains(old)
            )
            handle(.leaving)
            drain()
        }
    }

    private func finishMove() -> Bool {
        guard let move, engine.isSaved || move.discardsUnsaved else { return false }
        let before = engine.values
        engine.move(
            to: move.disk.changes(after: -1), discardsUnsaved: move.discardsUnsaved,
            at: device.reading)
        self.move = nil
        disk.close(by: self)
        disk = move.disk
        signedIn = nil
        noteChanges(from: before, .account)
        world.journal.note(.moved(process: number, disk.name))
        app.turn()
        disk.open(by: self)
        let wanted = wanted
        self.wanted = nil
        if let wanted { follow(wanted) }
        return true
    }

    // MARK: - The driver

    func tell(_ event: SyncEngine.Event) {
        guard isAlive else { return }
        handle(event)
        scheduleDrain()
    }

    /// On the driver's queue, when the save that is under way is done.
    private func enqueue(_ body: @escaping () -> Void) {
        guard isAlive else { return }
        if saving == nil { body() } else { work.append(body) }
    }

    private func scheduleDrain() {
        guard !isDrainScheduled, isAlive else { return }
        isDrainScheduled = true
        world.after(0) { [self] in enqueue { [self] in drain() } }
    }

    private func drain(_ done: @escaping () -> Void = {}) {
        guard isAlive else { return }
        isDrainScheduled = false
        while let effect = engine.nextEffect(at: device.reading) {
            if case .save(let batch) = effect {
                return save(batch) { [self] in drain(done) }
            }
            perform(effect)
        }
        if finishMove() { return drain(done) }
        noteRest()
        scheduleWake()
        done()
    }

    private func scheduleWake() {
        wakes += 1
        guard let wake = engine.nextWake else { return }
        let number = wakes
        world.at(max(device.clock.moment(ofUptime: wake), world.now + 1)) { [self] in
            guard isAlive, number == wakes else { return }
            enqueue { [self] in drain() }
        }
    }

    private func save(_ batch: SaveBatch, then next: @escaping () -> Void) {
        saving = batch
        if let fault {
            self.fault = nil
            world.after(world.chance.int64(0...world.scenario.flushMax), fault)
        }
        world.after(world.chance.int64(0...world.scenario.flushMax)) { [self] in
            guard isAlive else { return }
            finishSave(batch)
            saving = nil
            next()
            while saving == nil, isAlive, !work.isEmpty { work.removeFirst()() }
        }
    }

    private func finishSave(_ batch: SaveBatch) {
        if disk.isFull { return handle(.saveFailed("the disk is full")) }
        world.journal.note(.saves(process: number, batch.entries))
        switch disk.save(batch) {
        case .saved(let version):
            handle(.saved(version: version))
            if !batch.refused.isEmpty {
                world.journal.note(
                    .withdrawn(disk: disk.name, batch.refused.map(\.record)))
            }
            ringBell()
        case .conflict(let changes): handle(.saveConflicted(changes))
        }
    }

    private func ringBell() {
        for process in disk.processes where process !== self {
            world.after(world.chance.int64(0...5)) { process.lookAtDisk() }
        }
    }

    private func refresh() {
        if disk.version != engine.diskVersion {
            handle(.diskChanged(disk.changes(after: engine.diskVersion)))
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

    private var address: (store: StoreName, device: DeviceID)? {
        guard let signedIn, let account = Int(signedIn.account),
            let device = DeviceID(signedIn.device)
        else { return nil }
        return (StoreName(account: account, store: store), device)
    }

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
            case .failure(let failure): tell(.pushFailed(number, failure))
            }
        }
    }

    private func answered(_ number: Int, _ push: Push, _ answer: PushAnswer) {
        guard isAlive else { return }
        handle(.pushAnswered(number, answer), refused: answer.refusedKeys(of: push))
        scheduleDrain()
    }

    private func pull(_ number: Int, since cursor: Cursor?) {
        guard let address else { return }
        world.network.request(on: device) {
            [world] (reply: (Result<ChangeSet, LinkFailure>) -> Void) in
            reply(world.server.pull(address.store, since: cursor, by: address.device))
        } done: { [self] result in
            switch result {
            case .success(let changes): tell(.pulled(number, changes))
            case .failure(let failure): tell(.pullFailed(number, failure))
            }
        }
    }

    // MARK: - For the journal

    /// Tells the engine, and looks what the app would see change.
    /// - Parameter refused: What the app is told of also where it shows no difference: the deletion
    ///   of what the server never had.
    private func handle(_ event: SyncEngine.Event, refused: Set<Key> = []) {
        let cause = Observation.Cause(event, engine)
        guard let cause else { return engine.handle(event, at: device.reading) }
        let before = engine.values
        let withdrawn = Set(refused.intersection(engine.ownRecords).map(\.whole))
        engine.handle(event, at: device.reading)
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
    fileprivate init?(_ event: SyncEngine.Event, _ engine: borrowing SyncEngine) {
        switch event {
        case .streamReceived(_, .changes(let changes)):
            self = changes.isWhole && !engine.meta.hasCompletedFirstSync ? .firstDownload : .server
        // Stamps become final, and some writes turn out to be older than what the server has.
        case .pulled, .streamReceived, .leading, .pushFailed: self = .server
        case .saveConflicted, .diskChanged: self = .otherProcess
        case .pushAnswered: self = .answer
        default: return nil
        }
    }
}
