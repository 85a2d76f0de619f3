// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// A server and its devices in one thread and virtual time: the rules that ship, joined by function
/// calls. What a device sends arrives when ``settle()`` runs.
final class SteppedCloud {
    private(set) var now: Int64 = 1_800_000_000_000
    var serverClockError: Int64 = 0
    var serverNow: Int64 { now + serverClockError }
    /// The time that the server claims at the end of its changes, and when it refuses pushes for theirs.
    var claimed: Int64?
    private(set) var server = SteppedServer(epoch: 1)
    private(set) var devices: [SteppedDevice] = []

    /// - Parameter unkept: The keys that it excludes from the history.
    func device(
        clockError: Int64 = 0, policy: FirstSyncPolicy = .serverWins,
        unkept: Set<ExactString> = [], isSignedIn: Bool = true
    ) -> SteppedDevice {
        let device = SteppedDevice(
            number: devices.count + 1, cloud: self, clockError: clockError, policy: policy,
            isSignedIn: isSignedIn, unkept: unkept)
        devices.append(device)
        return device
    }

    /// Another machine with the same sign-in: a clone, or the device itself from an older copy.
    func device(as other: SteppedDevice, on disk: TestDisk) -> SteppedDevice {
        let device = SteppedDevice(
            number: Int(other.id.rawValue), cloud: self, clockError: other.clockError,
            policy: .serverWins, disk: disk)
        devices.append(device)
        return device
    }

    /// Sets how many parts of a counter are listed before some are folded.
    func setPartsMax(_ max: Int) { server.partsMax = max }

    func compactFolded() { server.compactFolded() }

    /// Says that the account is sealed with the key of this number, and ends all streams.
    func mark(_ generation: UInt32) {
        server.generation = generation
        for device in devices { device.cut() }
    }

    /// Seals what the server has, as a device with the key does.
    func seal(with sealer: Sealer) throws {
        let whole = ChangeSet(
            records: server.records.values.sorted { $0.key < $1.key }, cursor: Cursor("c")!,
            serverMilliseconds: serverNow, isWhole: true)
        try server.replace(
            by: sealer.sealWhole(whole, by: .unassigned, latest: serverNow, run: 7).records,
            now: serverNow)
        for device in devices { device.cut() }
    }

    func forge(_ record: Record) { server.forge(record) }

    /// Refuses who has another key than the account's.
    func check(_ generation: UInt32) throws(LinkFailure) {
        guard generation != server.generation else { return }
        throw LinkFailure(.sealed(generation: server.generation), "the account is sealed")
    }

    func setLimits(_ change: (inout StoreLimits) -> Void) { change(&server.limits) }

    func pass(milliseconds: Int64) { now += milliseconds }

    /// Lets everybody do what there is to do, until there is nothing.
    func settle() {
        for _ in 0..<1_000 {
            var isDone = true
            for device in devices where device.step() { isDone = false }
            if isDone { return }
        }
        Issue.record("the devices did not come to rest")
    }

    /// The server says that all deletions up to then are forgotten.
    func setHorizon(_ timestamp: HybridTimestamp) { server.horizon = timestamp }

    /// Without a word to those who listen.
    func compactTombstones() { server.compactTombstones() }

    /// - Parameter cuts: Whether the devices' streams end.
    func replaceServer(by server: SteppedServer, cuts: Bool = true) {
        self.server = server
        if cuts { for device in devices { device.cut() } }
    }

    /// Ends the server's process and starts it again: the next epoch.
    func restartServer(cuts: Bool = true) {
        var server = server
        server.epoch += 1
        replaceServer(by: server, cuts: cuts)
    }

    func push(_ push: Push) throws(LinkFailure) -> PushAnswer {
        try check(push.generation)
        if let claimed { throw LinkFailure(.clockAhead(serverMilliseconds: claimed), "ahead") }
        do throws(ClockAhead) { return try server.push(push, now: serverNow) } catch {
            throw LinkFailure(.clockAhead(serverMilliseconds: error.serverMilliseconds), "ahead")
        }
    }
}

/// One store of a server.
struct SteppedServer {
    var epoch: UInt64
    var limits = StoreLimits()
    var allowance = Allowance(burst: 1_000, perSecond: 1_000)
    private(set) var records: [Key: Record] = [:]
    private(set) var state = StoreState()
    var partsMax = 60
    private var folded: [FoldedIncrement.ID: FoldedIncrement] = [:]
    private(set) var revisions: [Key: Int64] = [:]
    private(set) var pushes = 0
    var horizon = HybridTimestamp.zero
    /// The number of the key that the account is sealed with; 0 if it is not.
    var generation: UInt32 = 0

    init(epoch: UInt64) { self.epoch = epoch }

    subscript(key: String) -> PropertyListValue? { records[try! Key(key)]?.content.value }

    mutating func push(_ push: Push, now: Int64) throws(ClockAhead) -> PushAnswer {
        pushes += 1
        let committed = try state.admit(
            push, records: records, folded: Array(folded.values), by: admission(now), in: epoch)
        for increment in committed.folded { folded[increment.id] = increment }
        for write in committed.writes {
            records[write.key] = write
            revisions[write.key] = committed.position.revision
        }
        return committed.answer
    }

    private func admission(_ now: Int64) -> PushAdmission {
        var admission = PushAdmission(limits: limits, now: now, partsMax: partsMax)
        admission.generation = generation
        return admission
    }

    /// Replaces everything, as a device with the key does.
    mutating func replace(by records: [Record], now: Int64) throws {
        let whole = WholeStore(
            cursor: state.lineage.position.cursor, generation: generation, records: records)
        _ = try state.replace(by: whole, by: admission(now), in: epoch)
        self.records = Dictionary(last: records.lazy.map { ($0.key, $0) })
        revisions = self.records.mapValues { _ in state.lineage.revision }
    }

    /// A server that keeps no rule.
    mutating func forge(_ record: Record) {
        records[record.key] = record
        _ = state.lineage.advance(in: epoch)
        revisions[record.key] = state.lineage.revision
    }

    func changes(since cursor: Cursor?, now: Int64) throws(LinkFailure) -> ChangeSet {
        var after: Int64 = 0
        if let position = cursor.flatMap(Position.init) {
            switch state.lineage.resumption(from: position) {
            case .after(let revision): after = revision
            case .otherHistory: throw LinkFailure(.cursorGone(isOtherHistory: true), "gone")
            case .compacted: throw LinkFailure(.cursorGone(isOtherHistory: false), "gone")
            }
        }
        let records = records.values.filter {
            revisions[$0.key]! > after && (cursor != nil || $0.content.value != nil)
        }
        return ChangeSet(
            records: records.sorted { $0.key < $1.key }, cursor: state.lineage.position.cursor,
            serverMilliseconds: now, isWhole: cursor == nil, horizon: horizon)
    }

    /// Has it forget a deletion of that time.
    mutating func setHorizon(_ timestamp: HybridTimestamp) { state.newestCompacted = timestamp }

    /// Has it forget all that it has folded so far.
    mutating func compactFolded() {
        state.foldsCompacted = FoldHorizon(
            timestamp: folded.values.map(\.timestamp).max() ?? .zero,
            revision: state.lineage.revision)
        folded = [:]
    }

    mutating func compactTombstones() {
        for record in records.values where record.content == .deleted {
            state.lineage.compactedRevision = max(
                state.lineage.compactedRevision, revisions[record.key] ?? 0)
            state.newestCompacted = max(state.newestCompacted, record.stamp.timestamp)
            records[record.key] = nil
        }
    }

    var config: (Int64) -> ServerConfig {
        { [limits, allowance] now in
            ServerConfig(
                serverMilliseconds: now, limits: limits, allowance: allowance,
                deletionsRememberedSeconds: 86_400)
        }
    }
}

extension PushAdmission.Stored {
    /// A store without anything.
    init() { self.init(records: [:], state: StoreState(), increments: [], epoch: 0) }
}

/// The disk that several processes of a device share.
@dynamicMemberLookup
final class TestDisk {
    private(set) var content = DiskContent()
    /// The device's sign-in.
    var state = DeviceState()
    var isFull = false
    /// The file cannot be opened.
    var isUnreadable = false

    subscript<Value>(dynamicMember path: WritableKeyPath<DiskContent, Value>) -> Value {
        get { content[keyPath: path] }
        set { content[keyPath: path] = newValue }
    }

    var copy: TestDisk {
        let copy = TestDisk()
        (copy.content, copy.state) = (content, state)
        return copy
    }

    func save(_ batch: SaveBatch) -> SyncEngine.Event {
        if isFull || isUnreadable { return .saveFailed("the disk is full") }
        return switch content.save(batch) {
        case .saved(let version): .saved(version: version)
        case .conflict(let changes): .saveConflicted(changes)
        }
    }
}

/// One process of a device: its driver, whose steps are carried out by calls.
final class SteppedDevice {
    private unowned var cloud: SteppedCloud
    private(set) var disk: TestDisk
    /// Where the device turns to.
    private var other: (cloud: SteppedCloud, disk: TestDisk)?
    let id: DeviceID
    var clockError: Int64
    private let boot: UInt64
    var isOnline = true
    private(set) var driver: Driver
    private(set) var notices: [Notice] = []
    private(set) var finished: [Int: LinkFailure?] = [:]
    /// Answers of the server get lost while this is set.
    var losesAnswers = false
    /// Answers to pushes come when ``answer()`` is called.
    var holdsAnswers = false
    /// So do those to pulls.
    var holdsPulls = false
    private var held: [SyncEngine.Event] = []
    /// The app's own rule takes long: whoever calls it has this.
    var holdsConflicts = false
    private(set) var conflict: Conflict?
    /// The stream brings nothing while this is set.
    var holdsStream = false
    /// The failure with which streams are refused; nil if they are not.
    var streamFailure: LinkFailure?
    /// A stream is opened and brings nothing.
    var buffersStreams = false
    /// Milliseconds that pass between a request and what the server says, and then until that is
    /// here.
    var way: (there: Int64, back: Int64) = (0, 0)
    var onNoteSealed: () -> Void = {}
    private(set) var reports: [String] = []
    private(set) var polls = 0
    /// The cursor that it last said to have saved.
    private(set) var told: Cursor?
    /// A push of so many bytes of values never gets there.
    var pushBytesThatTimeOut = Int.max
    /// A proxy refuses it.
    var pushBytesTooLarge = Int.max
    /// Milliseconds that a push takes.
    var pushMilliseconds: Int64 = 0
    private(set) var pushes: [Push] = []
    private var buffered: (stream: Int, messages: [StreamMessage])?
    private var stream: Int?
    private var streamCursor: Cursor?

    init(
        number: Int, cloud: SteppedCloud, clockError: Int64, policy: FirstSyncPolicy,
        disk: TestDisk = TestDisk(), leads: Bool = true, isSignedIn: Bool = true,
        boot: UInt64 = 1, unkept: Set<ExactString> = []
    ) {
        self.boot = boot
        self.cloud = cloud
        self.disk = disk
        self.clockError = clockError
        id = DeviceID(rawValue: UInt64(number))
        let now = Self.reading(cloud, clockError, boot)
        var settings = SyncEngine.Settings()
        settings.firstSync = policy
        settings.unkept = unkept
        driver = Driver(
            content: disk.content.changes(after: nil), device: disk.state,
            store: try? StoreIdentifier("store"), settings: settings, seed: .random(in: 0 ... .max),
            at: now)
        if leads { receive(.leading(true)) }
        if isSignedIn { signIn() }
    }

    private static func reading(
        _ cloud: SteppedCloud, _ error: Int64, _ boot: UInt64
    ) -> ClockReading {
        ClockReading(wall: cloud.now + error, uptime: cloud.now - 1_700_000_000_000, boot: boot)
    }

    var state: DeviceState {
        get { disk.state }
        set { disk.state = newValue }
    }

    var reading: ClockReading { Self.reading(cloud, clockError, boot) }

    func signIn(to account: String = "account", isSealed: Bool = false) {
        state.signIn(
            SignedInAccount(
                server: "", account: account, accountName: account, device: "\(id)",
                deviceName: "", credential: ""),
            isSealed: isSealed)
        happened(.accountRead(state))
    }

    /// Signs in again, to an account that is not sealed, which a person has allowed.
    func signInInClear() {
        signIn()
        state.sealing?.unseal()
        happened(.accountRead(state))
    }

    /// Takes the account's keys.
    func keep(_ keyring: Keyring) {
        do { try state.keep(keyring) } catch { preconditionFailure("\(error)") }
        happened(.accountRead(state))
    }

    func signOut() {
        state.signOut()
        happened(.accountRead(state))
    }

    var engine: SyncEngine {
        get { driver.engine }
        set { driver.engine = newValue }
    }

    func receive(_ event: SyncEngine.Event) { happened(.engine(event)) }

    func happened(_ event: Driver.Event) { driver.handle(event, at: reading) }

    /// Another process of this device.
    func helper(unkept: Set<ExactString> = []) -> SteppedDevice {
        SteppedDevice(
            number: Int(id.rawValue), cloud: cloud, clockError: clockError,
            policy: engine.settings.firstSync, disk: disk, leads: false, unkept: unkept)
    }

    /// The device turns to another account, which another server has, and which has this disk here.
    func turn(to account: String, in cloud: SteppedCloud, _ disk: TestDisk) {
        other = (cloud, disk)
        signIn(to: account)
        while step() {}
    }

    /// The process ends without a word, and another one starts on the same disk.
    func restarted(isSignedIn: Bool = true, boot: UInt64 = 1) -> SteppedDevice {
        SteppedDevice(
            number: Int(id.rawValue), cloud: cloud, clockError: clockError,
            policy: engine.settings.firstSync, disk: disk, isSignedIn: isSignedIn, boot: boot)
    }

    subscript(key: String) -> PropertyListValue? {
        get { engine[try! Key(key)] }
        set { try! write([key: newValue]) }
    }

    func write(_ changes: [String: PropertyListValue?]) throws {
        var contents: [Key: Content] = [:]
        for (key, value) in changes {
            contents[try Key(key)] = value.map(Content.value) ?? .deleted
        }
        try engine.write(contents, at: reading)
    }

    func write(merging operations: [Key: MergeOperation]) throws {
        try engine.write([:], merging: operations, at: reading)
    }

    func resolve(_ key: Key, _ resolver: @escaping Resolver) {
        engine.setPolicy(.register, resolver: resolver, for: key)
        decide()
    }

    /// Calls the app's own rules.
    func decide() {
        while let conflict = engine.takeConflict() {
            engine.decide(conflict, as: conflict.result)
        }
    }

    func requestSync() -> Int { engine.requestSync(at: reading) }

    func takeNotices() -> [Notice] {
        defer { notices = [] }
        return notices
    }

    /// Delivers the answers that were held.
    /// - Parameter pulls: Whether pulls are answered as well; otherwise their answers are dropped.
    func answer(pulls: Bool = true) {
        (holdsAnswers, holdsPulls) = (false, false)
        if pulls { answerPulls() }
        for event in held { if case .pushAnswered = event { receive(event) } }
        held = []
    }

    /// Delivers the answers to pulls that were held, before those to pushes.
    func answerPulls() {
        for event in held { if case .pulled = event { receive(event) } }
        held.removeAll { if case .pulled = $0 { true } else { false } }
    }

    /// Delivers what a stream kept back, as it was when it was requested.
    func bringStream() {
        guard let buffered else { return }
        (stream, buffersStreams) = (buffered.stream, false)
        for message in buffered.messages { receive(.streamReceived(buffered.stream, message)) }
    }

    /// The stream goes on by another connection, see ``SharedStream``.
    func moveStream() {
        if let stream { listen(stream, since: engine.meta.cursor) }
    }

    /// The connection breaks.
    func cut() {
        guard let stream else { return }
        self.stream = nil
        receive(.streamEnded(stream, LinkFailure(.unreachable, "cut")))
    }

    func goOffline() {
        isOnline = false
        cut()
    }

    func goOnline() {
        isOnline = true
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
    }

    /// Does what there is to do.
    /// - Returns: Whether there was anything.
    func step() -> Bool {
        var isBusy = false
        if engine.diskVersion < disk.version { happened(.fileSignalled) }
        while let step = driver.next(at: reading) {
            perform(step)
            isBusy = true
        }
        if !driver.isBusy, !engine.isSaved, engine.diskFailure == nil {
            Issue.record("has nothing to do, and has not saved everything")
        }
        return deliver() || isBusy
    }

    private func perform(_ step: Driver.Step) {
        switch step {
        case .decide where holdsConflicts: conflict = engine.takeConflict()
        case .decide: decide()
        case .effect(let effect): perform(effect)
        case .read(let version):
            happened(
                .fileRead(disk.version == version ? nil : disk.content.changes(after: version)))
        case .readAccount: happened(.accountRead(state))
        case .noteSealed(let account):
            onNoteSealed()
            state.sealedAccounts.insert(account)
            happened(.accountRead(state))
        case .open where other?.disk.isUnreadable ?? false: happened(.unopened("unreadable"))
        case .open: happened(.opened(other?.disk.content.changes(after: nil) ?? DiskChanges()))
        case .use(let file):
            if let other {
                other.disk.state = state
                (cloud, disk) = other
            }
            stream = nil
            if !disk.isUnreadable { happened(.leading(file: file, true)) }
        case .report(let text, _): reports.append(text)
        case .connect, .release, .synchronized, .close: break
        }
    }

    private func perform(_ effect: SyncEngine.Effect) {
        switch effect {
        case .save(let batch): receive(disk.save(batch))
        case .notify(let notice):
            notices.append(notice)
            receive(.notified)
        case .finishSync(let id, let failure): finished[id] = .some(failure)
        case .hangUp: stream = nil
        case .listen(let stream, let cursor, let isSaved):
            if isSaved { told = cursor }
            listen(stream, since: cursor)
        case .push(let number, let push): self.push(number, push)
        case .pull(let number, let cursor, let isSaved, let withConfig):
            polls += 1
            do throws(LinkFailure) {
                try reach()
                try cloud.check(engine.generation)
                if isSaved { told = cursor }
                cloud.pass(milliseconds: way.there)
                var changes = try cloud.server.changes(since: cursor, now: cloud.serverNow)
                if withConfig { changes.config = cloud.server.config(cloud.serverNow) }
                cloud.pass(milliseconds: way.back)
                if holdsPulls { return held.append(.pulled(number, changes)) }
                receive(.pulled(number, changes))
            } catch { receive(.pullFailed(number, error)) }
        }
    }

    private func reach() throws(LinkFailure) {
        if !isOnline { throw LinkFailure(.unreachable, "offline") }
    }

    private func listen(_ stream: Int, since cursor: Cursor?) {
        do throws(LinkFailure) {
            try reach()
            try cloud.check(engine.generation)
            if let streamFailure { throw streamFailure }
            cloud.pass(milliseconds: way.there)
            let changes = try cloud.server.changes(since: cursor, now: cloud.serverNow)
            let config = cloud.server.config(cloud.claimed ?? cloud.serverNow)
            cloud.pass(milliseconds: way.back)
            streamCursor = changes.cursor
            buffered = (stream, [.changes(changes), .ready(changes.cursor, config)])
            if !buffersStreams { bringStream() }
        } catch { receive(.streamEnded(stream, error)) }
    }

    private func push(_ number: Int, _ push: Push) {
        do throws(LinkFailure) {
            try reach()
            let bytes = push.transactions.flatMap(\.writes)
                .reduce(0) { $0 + ($1.content.value?.quotaBytes ?? 0) }
            pushes.append(push)
            if let saved = push.saved { told = saved }
            if bytes >= pushBytesThatTimeOut { throw LinkFailure(.timedOut, "too slow") }
            if bytes >= pushBytesTooLarge || push.bytes > cloud.server.limits.pushBytesMax {
                throw LinkFailure(.tooLarge, "413")
            }
            cloud.pass(milliseconds: pushMilliseconds)
            let answer = try cloud.push(push)
            if losesAnswers { throw LinkFailure(.unreachable, "the answer got lost") }
            if holdsAnswers {
                held.append(.pushAnswered(number, answer))
            } else {
                receive(.pushAnswered(number, answer))
            }
        } catch { receive(.pushFailed(number, error)) }
    }

    private func deliver() -> Bool {
        guard let stream, !holdsStream,
            let changes = try? cloud.server.changes(since: streamCursor, now: cloud.serverNow),
            changes.cursor != streamCursor
        else { return false }
        streamCursor = changes.cursor
        receive(.streamReceived(stream, .changes(changes)))
        return true
    }
}

// Under a policy.
extension SteppedDevice {
    subscript(key: Key) -> PropertyListValue? { engine[key] }

    func apply(
        _ policy: MergePolicy, from base: PropertyListValue?, to value: PropertyListValue?,
        _ key: Key
    ) throws {
        try write(merging: [key: MergeOperation(policy, from: base, to: value)])
    }

    func count(_ key: Key, by number: Int64) throws {
        try apply(.counter, from: .integer(0), to: .integer(number), key)
    }
}
