// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// One process with one store: the engine and driver that ship, in virtual time. Makes no
/// decisions.
final class VirtualProcess: ScenarioProgram, VirtualDiskUser {
    let number: Int
    unowned let device: SimulatedDevice
    let store: Int
    unowned let world: World
    var driver: Driver
    var disk: VirtualDisk
    /// The disk that was opened last.
    var opened: VirtualDisk?
    /// Whether the disk could be opened.
    var isOpen = true
    private(set) var isAlive = true
    let app: App
    var saving: SaveBatch?
    /// An event that happens during the next save.
    var duringSave: (() -> Void)?
    /// The disk is to keep the next save, but report a failure.
    var losesSaveAnswer = false
    var synchronizing: [(Bool) -> Void] = []
    private var wakes = 0
    /// The number of wakes caused by time alone since the faults ended.
    private(set) var wakesInPeace = 0
    var streams: [Int: VirtualStream] = [:]
    /// The destination of the link.
    var address: (store: StoreReference, device: DeviceID)?
    /// The events for requests under way, and for broken streams, if there is no answer.
    var requests: [Int: SyncEngine.Event] = [:]
    var isChanged = true
    /// The app's knowledge of the keys with its own rule, if it declares one.
    var rules: [Key: RuleView] = [:]
    /// Whether the queue is held up by the app's own rule.
    var isDeciding = false
    /// The notice about to be posted to the app.
    var posting: Notice?
    /// The keys that it excludes from histories.
    let unkeptKeys: Set<Key>
    /// The number of the account's key that its requests name.
    var generation: UInt32 = 0
    /// The accounts that it was told are sealed, by its device or by the server.
    var knowsSealed: Set<Int> = []
    /// The work that arrived while the process was stopped; nil while it runs.
    private var missed: (work: [() -> Void], since: Int64)?

    init(device: SimulatedDevice, store: Int, world: World) {
        number = world.newProcessNumber()
        self.device = device
        self.store = store
        self.world = world
        disk = device.disk(store, folder: device.state.folder)
        var settings = SyncEngine.Settings()
        settings.firstSync = world.scenario.firstSync
        settings.key = world.scenario.limits.key
        settings.pushBytesMax = world.scenario.limits.pushBytesMax
        settings.emptyMax = 2
        unkeptKeys = world.scenario.unkeptKeys(of: number)
        settings.unkept = Set(unkeptKeys.map(\.name))
        driver = Driver(
            content: disk.changes(after: -1), device: device.state,
            store: world.identifier(ofStore: store), settings: settings,
            seed: world.chance.number(), at: device.reading)
        app = App(world: world)
        knowsSealed = Set(device.state.sealedAccounts.compactMap { Int($0.string) })
        if declaresRule { declareRule() }
        let refused = app.takeUpCounts(self)
        world.journal.note(.opened(process: number, disk: disk.name, values: engine.values))
        if !refused.isEmpty { world.journal.note(.refused(process: number, refused)) }
        disk.open(by: self)
        schedule()
        decideConflicts { [self] in schedule() }
        app.start(self)
    }

    /// Makes the process of a copied machine, with everything that the original has in memory. It
    /// is stopped at first.
    init(copying original: VirtualProcess, on device: SimulatedDevice) {
        number = original.world.newProcessNumber()
        unkeptKeys = original.unkeptKeys
        self.device = device
        store = original.store
        world = original.world
        driver = original.driver
        driver.unschedule()
        disk = device.disk(store, folder: original.disk.name.folder)
        opened = original.opened.map { device.disk(original.store, folder: $0.name.folder) }
        isOpen = original.isOpen
        saving = original.saving
        (address, generation) = (original.address, original.generation)
        app = App(copying: original.app)
        missed = ([], world.now)
        world.journal.note(.resumed(process: number, disk: disk.name, from: original.number))
        disk.open(by: self)
        if saving != nil { endSave() }
        // Its connections are broken, and what it was told while stopped is repeated.
        let broken = original.streams.keys.sorted().map {
            SyncEngine.Event.streamEnded($0, Self.reset)
        }
        for event in original.requests.sorted(by: { $0.key < $1.key }).map(\.value) + broken {
            let request = begin(event)
            world.after(world.chance.int64(0...50_000)) { [self] in answered(request, event) }
        }
        if let notice = original.posting { notify(notice) }
        receive(.fileSignalled)
        receive(.accountSignalled)
        whenRunning { [self] in run() }
        app.start(self)
    }

    var engine: SyncEngine { _read { yield driver.engine } }

    /// Whether its app declares the rule for keys with a rule of the app's own. Other apps see the
    /// later value.
    var declaresRule: Bool { number % 2 == 0 }

    // MARK: - For the app

    func write(_ changes: [Key: Content]) throws(LimitViolation) {
        defer { finishWrite() }
        try driver.engine.write(changes, at: device.reading)
    }

    func revert(to contents: [Key: Content]) throws(LimitViolation) {
        defer { finishWrite() }
        try driver.engine.revert(to: contents, at: device.reading)
    }

    func apply(_ operation: MergeOperation, _ key: Key) throws(LimitViolation) {
        defer { finishWrite() }
        try driver.engine.write([:], merging: [key: operation], at: device.reading)
    }

    func perform(_ move: MergeMove) throws(LimitViolation) -> AppOperation.Act? {
        defer { finishWrite() }
        return try move.perform(in: &driver.engine, at: device.reading)
    }

    /// `synchronize()`: calls back when it returns.
    func synchronize(_ done: @escaping (Bool) -> Void) {
        synchronizing.append(done)
        receive(.synchronize)
    }

    func requestSync() -> Int {
        defer { schedule() }
        return driver.engine.requestSync(at: device.reading)
    }

    // MARK: - For the parts around it

    func becomeLeader(of disk: VirtualDisk) {
        whenRunning { [self] in
            if disk === self.disk, isOpen { receive(.leading(file: driver.file, true)) }
        }
    }

    func lookAtDisk() { receive(.fileSignalled) }

    func followDevice() { receive(.accountSignalled) }

    /// Whether it is connected, with a stream, or without one if none is possible.
    var isConnected: Bool {
        switch engine.status.link.state {
        case .connected: true
        case .polling: device.quality.isBuffering || hasTooManyPeers || areStreamsTaken
        default: false
        }
    }

    /// Whether the account's processes want more streams than there are.
    private var hasTooManyPeers: Bool {
        world.devices.reduce(0) { $0 + ($1.account == device.account ? $1.processes.count : 0) }
            > world.scenario.streamsMax
    }

    /// Perhaps by connections that died silently.
    private var areStreamsTaken: Bool {
        device.account.map { world.server.hasAllStreams($0) } ?? false
    }

    /// Ends abruptly. The save under way is on disk, or is not.
    func kill() {
        if let saving, world.chance.coin(), !disk.isFull, isOpen {
            if case .saved = keep(saving) { signalCommit() }
        }
        isAlive = false
        unlock()
        for stream in openStreams { stream.hangUp() }
        streams = [:]
        disk.close(by: self)
        world.journal.note(.ended(process: number))
    }

    /// Breaks the reference cycles with its streams and its disk.
    func release() {
        streams = [:]
        disk.detach(self)
        (duringSave, missed) = (nil, nil)
    }

    // MARK: - Stopped and continued

    var isStopped: Bool { missed != nil }

    /// Pauses the process, which keeps its connections, and the lock on a file that it was writing.
    /// - Parameter losesLease: Another process gets it, and this one only hears of it when it goes
    ///   on.
    func stop(losesLease: Bool) {
        guard isAlive, missed == nil else { return }
        missed = ([], world.now)
        if saving != nil { disk.writer = self }
        guard losesLease, isOpen, disk.processes.first === self else { return }
        disk.close(by: self)
        disk.open(by: self)
    }

    func goOn() {
        guard let (work, since) = missed else { return }
        missed = nil
        world.note(.paused(device: device.number, milliseconds: world.now - since))
        unlock()
        for body in work { whenRunning(body) }
        // It believes to lead until it is told.
        world.after(world.chance.pick([0, world.chance.int64(0...5_000)])) { [self] in
            whenRunning { [self] in
                guard isOpen, disk.processes.first !== self else { return }
                receive(.leading(file: driver.file, false))
            }
        }
    }

    private func unlock() { if disk.writer === self { disk.writer = nil } }

    /// Runs the closure now, or when the process continues, or never if it has ended.
    func whenRunning(_ body: @escaping () -> Void) {
        guard isAlive else { return }
        if missed == nil { body() } else { missed?.work.append(body) }
    }

    // MARK: - The driver's queue

    func receive(_ event: Driver.Event) {
        whenRunning { [self] in
            handle(event)
            schedule()
        }
    }

    func schedule() {
        guard isAlive, driver.schedule() else { return }
        world.after(0) { [self] in whenRunning { [self] in run() } }
    }

    func run() {
        guard isAlive, !isDeciding else { return }
        while let (step, before) = next() {
            if step == .decide {
                isDeciding = true
                return decideConflicts { [self] in
                    isDeciding = false
                    run()
                }
            }
            perform(step, before)
        }
        guard !driver.isBusy else { return }
        noteRest()
        scheduleWake()
    }

    /// - Returns: The step, with the values that the app saw before if it switches to another file.
    private func next() -> (Driver.Step, before: [Key: PropertyListValue])? {
        let before = driver.isLeaving || !isOpen ? engine.values : [:]
        return driver.next(at: device.reading).map { ($0, before) }
    }

    private func scheduleWake() {
        wakes += 1
        guard let wake = driver.nextWake else { return }
        let number = wakes
        world.at(max(device.clock.moment(ofUptime: wake), world.now + 1)) { [self] in
            whenRunning { [self] in
                guard number == wakes else { return }
                if world.isPeaceful { wakesInPeace += 1 }
                run()
            }
        }
    }
}
