// SPDX-License-Identifier: Apache-2.0

import UbiquityCore
import UbiquitySimulation

/// A process of the client on one device. Tells it what happens, carries out its answers, and
/// reports both to the checkers.
final class ClientProcess: ScenarioProgram {
    let number: Int
    /// The number among the processes of its device.
    let place: Int
    unowned let device: ConformanceDevice
    unowned let world: ConformanceWorld
    private(set) var isAlive = true
    private(set) var state = ClientAnswer.State()
    /// What the next save meets, and all others until a time.
    var diskFailure: (how: DiskFailure, until: Int64)?
    /// Its file was replaced. A client need not go on with the new one.
    var mayHaveLostFile = false
    /// The disk is closed for this process.
    var isDiskClosed = false
    /// It stands still when the next save has begun, for so long.
    var stopsInSave: Int64?
    /// The work that arrived while the process stood still; nil while it runs.
    var missed: (work: [() -> Void], since: Int64)?
    /// The last write of an app before the save under way; nil if there is none.
    var saving: Int?
    var isReading = false
    /// The last write of its app, and the last one that is on the disk for sure.
    var lastWrite = 0
    var savedThrough = 0
    var isLeading = false
    private var isNotifying = false
    private var isFirstSyncDone = false
    private var wakes = 0
    private var wakesInPeace = 0
    private var lastTrip = 0
    /// The round trips that have not ended.
    private var trips: Set<Int> = []
    private var lastQuestion = 0
    /// The app's questions whether everything is on the disk that are not answered.
    private var questions: Set<Int> = []
    var streams: [Int: ClientStream] = [:]
    /// The requests under way.
    var requests: Set<Int> = []
    /// The changes of a pull that the client has not taken yet: it may wait for the configuration.
    var pulled: ChangeSet?
    /// The values that the app saw after it last wrote a key whose writes merge.
    var remembered: [Key: PropertyListValue] = [:]
    /// The deletions of this app that it still sees.
    var deletions: [Key: Int] = [:]

    private static let wakesMax = 20_000

    init(device: ConformanceDevice, place: Int, world: ConformanceWorld) {
        number = world.newProcessNumber()
        self.place = place
        self.device = device
        self.world = world
    }

    var name: DeviceID {
        device.state.signedIn.flatMap { DeviceID($0.device) } ?? DeviceID(rawValue: 1)
    }

    var disk: DiskReference {
        DiskReference(
            device: device.number, folder: device.state.folder, store: ConformanceWorld.store)
    }

    /// Whether its app declares a rule of its own for merging.
    var declaresRule: Bool { number.isMultiple(of: 2) }

    func start() {
        let rule = world.mergedKeys.filter { $0.value == .register && declaresRule }
        let start = ClientCommand.Start(
            account: "\(ConformanceWorld.account)", name: name, credential: credential,
            store: Self.storeName, seed: world.chance.number(),
            firstSync: world.scenario.firstSync, policies: rule, keyring: device.state.keyring)
        if !world.hasProcesses { noteLeading(true) }
        tell(.start(start)) { [self] _, answer in
            if answer.state == nil { world.complain("the client's answer to a start has no state") }
            isFirstSyncDone = state.cursor != nil
            if isFirstSyncDone { world.firstSyncs.insert(device.number) }
            world.note(.opened(process: number, disk: disk, values: state.values))
        }
        if world.hasProcesses { file.open(by: self) }
        work()
    }

    /// As the virtual world names the store, whose keys follow from it.
    static let storeName = "store\(ConformanceWorld.store)"
    var credential: String { "ubd_\(device.number)" }

    // MARK: - VirtualProgram

    /// The device has got the keys of its account.
    func followDevice() {
        whenRunning { [self] in
            guard let keyring = device.state.keyring else { return }
            tell(.unlock(keyring), .server)
        }
    }

    var openStreams: [VirtualStream] { streams.sorted { $0.key < $1.key }.map(\.value.stream) }

    func cutStream() {
        for stream in openStreams { world.chance.coin() ? stream.cut() : stream.goSilent() }
    }

    /// Ends abruptly. The save under way is on disk, or is not.
    func kill() {
        guard isAlive else { return }
        let keepsSave =
            saving != nil && diskFailure == nil && !isDiskClosed && world.chance.coin()
        isAlive = false
        // Of its answer, nothing else counts: a notice that still waits is lost with it.
        if let answer = ask(.kill(keepsSave: keepsSave)), keepsSave, !answer.isConflict {
            hint()
        }
        for stream in openStreams { stream.hangUp() }
        streams = [:]
        file.close(by: self)
        world.note(.ended(process: number))
    }

    /// Breaks the reference cycles with its streams and its disk.
    func release() {
        streams = [:]
        missed = nil
        file.detach(self)
    }

    // MARK: - The app

    func synchronizeNow() {
        lastTrip += 1
        let id = lastTrip
        trips.insert(id)
        tell(.sync(id: id), .server) { [self] before, _ in
            world.note(.askedRoundTrip(process: number, id: id, waiting: before.waiting))
        }
    }

    /// The app asks whether everything is on the disk.
    func synchronize() {
        lastQuestion += 1
        questions.insert(lastQuestion)
        tell(.synchronize(id: lastQuestion), .otherProcess)
    }

    /// - Parameter accepted: Called if the write was not refused, with what was there before.
    /// - Returns: Whether it was accepted.
    @discardableResult
    func write(
        _ writes: [ClientCommand.Write], accepted: @escaping (ClientAnswer.State) -> Void
    ) -> Bool {
        var isAccepted = false
        guard !isStopped else { return false }
        tell(.write(writes)) { [self] before, answer in
            guard answer.error == nil else {
                return world.note(
                    .refused(
                        process: number,
                        answer.error == "key-too-long" ? [] : Set(writes.map(\.key))))
            }
            isAccepted = true
            accepted(before)
        }
        return isAccepted
    }

    // MARK: - Commands and answers

    private func ask(_ event: ClientCommand.Event) -> ClientAnswer? {
        world.ask(.device(device.number, process: place, device.reading, event))
    }

    /// Tells the client what has happened, and carries out its answer.
    /// - Parameters:
    ///   - cause: Why the app may see a change; nil if it may not, or causes it itself.
    ///   - changes: What came from the server.
    ///   - note: Reports what happened, with what the client showed before. Called before the answer
    ///     is carried out.
    func tell(
        _ event: ClientCommand.Event, _ cause: Observation.Cause? = nil,
        receiving changes: ChangeSet? = nil,
        _ note: (ClientAnswer.State, ClientAnswer) -> Void = { _, _ in }
    ) {
        guard isAlive else { return }
        let before = state
        guard let answer = ask(event) else { return }
        state = answer.state?.completed(by: before) ?? state
        if let changes { noteDiscards(changes, before) }
        noteChanges(from: before, answer.isConflict ? .otherProcess : cause, changes)
        note(before, answer)
        if let changes { noteReceived(changes.cursor) }
        // Perhaps another process has made it.
        if state.cursor != nil { isFirstSyncDone = true }
        carryOut(answer)
    }

    private func carryOut(_ answer: ClientAnswer) {
        for notice in answer.notices {
            var values: [Key: PropertyListValue?] = [:]
            for key in notice.keys { values[key] = .some(state.values[key]) }
            world.note(.notified(process: number, notice, values))
        }
        isNotifying = answer.isNotifying
        trips.subtract(answer.synced.map(\.id))
        for (id, isDone) in answer.synced where isDone {
            world.note(
                .finishedRoundTrip(
                    process: number, id: id, values: state.contents, waiting: state.waiting))
        }
        world.note(.showsDisk(process: number, failure: state.diskError))
        for (id, isSaved) in answer.synchronized where questions.remove(id) != nil && isSaved {
            world.note(.synchronized(process: number))
        }
        for id in answer.cancelled { cancel(id) }
        for request in answer.requests { send(request) }
        if answer.isSaving { save() }
        if answer.isReading { read() }
        scheduleWake(answer.wake)
        if !isNotifying { world.note(.rested(process: number, values: state.values)) }
    }

    private func scheduleWake(_ wake: Int64?) {
        wakes += 1
        guard let wake else { return }
        let number = wakes
        world.at(max(device.clock.moment(ofUptime: wake), world.now + 1)) { [self] in
            whenRunning { [self] in
                guard number == wakes else { return }
                if world.isPeaceful { wakesInPeace += 1 }
                guard wakesInPeace <= Self.wakesMax else {
                    return world.complain(
                        "device \(device.number) wakes all the time, for nothing")
                }
                tell(.wake, .server)
            }
        }
    }

    // MARK: - Reports

    private func noteChanges(
        from before: ClientAnswer.State, _ cause: Observation.Cause?, _ changes: ChangeSet?
    ) {
        guard let cause else { return }
        let keys = Set(before.values.keys).union(state.values.keys)
        let changed = keys.filter { before.values[$0] != state.values[$0] }
        guard !changed.isEmpty else { return }
        let isFirst = changes?.isWhole == true && !isFirstSyncDone
        world.note(.changed(process: number, changed, isFirst ? .firstDownload : cause))
    }

    /// Reports the writes that the first download discards, on keys that the server has.
    private func noteDiscards(_ changes: ChangeSet, _ before: ClientAnswer.State) {
        guard changes.isWhole, !isFirstSyncDone, world.scenario.firstSync == .serverWins,
            state.cursor == changes.cursor, !world.firstSyncs.contains(device.number)
        else { return }
        let keys = Set(changes.records.map(\.key)).filter { world.mergedKeys[$0.whole] == nil }
        let plain = before.waiting.subtracting(state.waiting).filter { !$0.isPart }
        world.note(.discarded(disk: disk, keys.union(plain)))
    }

    /// Only a client that resumes from a cursor claims to have what came before it.
    func noteReceived(_ cursor: Cursor) {
        guard state.cursor == cursor, let position = Position(cursor) else { return }
        world.note(
            .received(
                process: number, storeReference, position, values: state.contents,
                own: state.waiting))
    }

    var storeReference: StoreReference {
        StoreReference(account: ConformanceWorld.account, store: ConformanceWorld.store)
    }

    /// - Parameter isOnline: Whether it has had the time to connect.
    func settled(_ isOnline: Bool) -> Settlement.Process {
        Settlement.Process(
            number: number, disk: disk, account: device.account, values: state.contents,
            waiting: state.waiting, isConnected: !isOnline || state.isConnected,
            onDisk: state.contents, merged: merged, diskFailure: state.diskError,
            wakes: wakesInPeace, streamsBeside: streams.count - (isLeading ? 1 : 0),
            tripsOpen: trips.count, questionsOpen: questions.count)
    }

    /// The values that the app sees, or would see if it declared its rule.
    private var merged: [Key: PropertyListValue] {
        var values = state.values.filter { world.mergedKeys[$0.key] != nil }
        for (key, policy) in world.mergedKeys where policy == .register && !declaresRule {
            values[key] = state.contents.filter { $0.key.whole == key }.values.max()
        }
        return values
    }
}
