// SPDX-License-Identifier: Apache-2.0

/// Drives one store in a process: decides when to read and save the file, lead, follow the device's
/// sign-in to another file, wake and end.
///
/// A value without threads or I/O that owns the store's ``SyncEngine``. Report events with
/// ``handle(_:at:)``, then carry out ``next(at:)`` until it is nil. The library does so on a queue,
/// the simulator in virtual time, and this module's tests by calls.
///
/// At most one step that touches a file is under way, and no other step begins meanwhile, because
/// its answer decides what comes next.
package struct Driver: Sendable {
    /// The store as the app reads and writes it.
    package var engine: SyncEngine
    /// A step that is answered by an event is under way.
    package internal(set) var isBusy = false
    private var isScheduled = false

    // The file
    /// The number of the file in use; the first one is 0.
    package internal(set) var file = 0
    var filesOpened = 0
    var reading = Attempt(isWanted: true)
    /// This process holds the lease, and was not told that it has lost it.
    var hasLease = false
    /// When it leads, by the uptime, once it has read everything in the file; nil if it leads already
    /// or has no lease.
    var leadsAt: Int64?
    /// The pause after another process, which had stood still, has led beside the holder of the lease:
    /// in it the other one hears that it has lost the lease.
    static let leadAgainMilliseconds: Int64 = 10_000

    // The device's sign-in: Driver+Account.swift
    var account: Attempt
    /// Nil if the store is in memory only and belongs to no device.
    var device: DeviceState?
    /// The folder of the file in use.
    package internal(set) var folder: String
    package internal(set) var signedIn: SignedInAccount?
    /// The keys that the engine has been given.
    var keyring: Keyring?
    /// Whether the engine was told that the account is sealed.
    var isSealed = false
    /// The account to connect to.
    var unconnected: (account: SignedInAccount, device: DeviceID)?
    /// The device has switched to another account and this store has not yet.
    package internal(set) var isLeaving = false
    /// The file to continue with.
    var opened: OpenedFile?
    var opening = Attempt(isWanted: true)
    /// The folder of the file to open; nil if there is none.
    var openingFolder: ExactString?
    /// Whether the file in use could be opened.
    var isOpen = true

    // Requests of the app
    private var isHurried = false
    private var isSynchronizing = false
    private var end = End.none
    private var reports: [(text: String, isOfServer: Bool)] = []
    /// Whether the app was told of what is set aside now.
    private var hasReportedSetAside = false

    struct OpenedFile: Sendable {
        var number: Int
        var folder: ExactString
        /// Nil while it is being opened.
        var content: DiskChanges?
    }

    private enum End { case none, wanted, reached }

    /// - Parameters:
    ///   - content: Everything in the store's file.
    ///   - device: The state of the device when the file was opened in its folder; nil for a store
    ///     in memory.
    ///   - store: The store's identifier at the server; nil if it is not synced.
    ///   - seed: A number that no other process of this device has.
    package init(
        content: DiskChanges, device: DeviceState?, store: StoreIdentifier?,
        settings: SyncEngine.Settings = SyncEngine.Settings(), seed: UInt64, at now: ClockReading
    ) {
        var settings = settings
        settings.store = store
        engine = SyncEngine(disk: content, settings: settings, seed: seed, at: now)
        self.device = device
        folder = device?.folder ?? ""
        account = Attempt(isWanted: device != nil)
        // Not later: a round trip requested right away must not find the device signed out.
        if let device { follow(device, isFresh: false, at: now) }
    }

    // MARK: - Events

    package mutating func handle(_ event: Event, at now: ClockReading) {
        switch event {
        case .engine(let event):
            engine.handle(event, at: now)
            answered(by: event)
            noteFollowing(at: now)
        case .fileSignalled: reading.want()
        case .fileRead(let changes): read(changes, at: now)
        case .fileUnreadable(let reason):
            isBusy = false
            reading.fail(reason, at: now, using: &engine.random)
        case .leading(let file, let leads): lead(leads, file, at: now)
        case .accountSignalled: account.want()
        case .accountRead(let state):
            isBusy = false
            account.succeed()
            follow(state, isFresh: true, at: now)
        case .accountUnreadable(let reason):
            isBusy = false
            if account.failure == nil { report("the sign-in cannot be read: \(reason)") }
            account.fail(reason, at: now, using: &engine.random)
        case .opened(let content):
            isBusy = false
            opened?.content = content
        case .unopened(let reason):
            isBusy = false
            if opening.failure == nil {
                report("the file of the account that signed in cannot be opened: \(reason)")
            }
            opening.fail(reason, at: now, using: &engine.random)
        case .unwatched(let reason):
            report("the store cannot watch for changes by other processes: \(reason)")
        case .synchronize:
            reading.want()
            (isHurried, isSynchronizing) = (true, true)
        case .close:
            guard end == .none else { return }
            end = .wanted
            (hasLease, leadsAt) = (false, nil)
            engine.handle(.leading(false), at: now)
        }
    }

    private mutating func noteFollowing(at now: ClockReading) {
        guard hasLease, leadsAt == nil, !engine.isLeading else { return }
        leadsAt = now.uptime + Self.leadAgainMilliseconds
    }

    /// Takes note of an answer. A successful save also proves that the file can be read.
    private mutating func answered(by event: SyncEngine.Event) {
        switch event {
        case .saved, .saveConflicted:
            isBusy = false
            reading.failure = nil
        case .saveFailed: isBusy = false
        default: break
        }
    }

    private mutating func read(_ changes: DiskChanges?, at now: ClockReading) {
        isBusy = false
        reading.succeed()
        if let changes { engine.handle(.diskChanged(changes), at: now) }
        // A leader has read everything that was saved before it got the lease.
        if let leadsAt, now.uptime >= leadsAt, !reading.isWanted {
            self.leadsAt = nil
            engine.handle(.leading(true), at: now)
        }
        noteFollowing(at: now)
    }

    private mutating func lead(_ leads: Bool, _ file: Int, at now: ClockReading) {
        guard file == self.file, end == .none else { return }
        (hasLease, leadsAt) = (leads, leads ? now.uptime : nil)
        if leads {
            reading.want()
        } else {
            engine.handle(.leading(false), at: now)
        }
    }

    private mutating func report(_ failure: String) { reports.append((failure, false)) }

    /// Reports once that there is something that the device does not take, until there is nothing.
    private mutating func reportSetAside() {
        let setAside = engine.meta.setAside
        guard setAside.isEmpty == hasReportedSetAside else { return }
        hasReportedSetAside = !setAside.isEmpty
        if hasReportedSetAside { reports.append((setAside.sentence, true)) }
    }

    // MARK: - Steps

    /// - Returns: Whether the caller must arrange for the steps to be carried out. If not, they are
    ///   already scheduled.
    package mutating func schedule() -> Bool {
        defer { isScheduled = true }
        return !isScheduled
    }

    /// Records that the scheduled steps will not be carried out.
    package mutating func unschedule() { isScheduled = false }

    /// The next step; nil if there is none until the current step is answered, the next event
    /// arrives or ``nextWake`` is reached.
    package mutating func next(at now: ClockReading) -> Step? {
        if !isBusy, let step = nextStep(at: now) {
            isBusy = step.isAnswered
            return step
        }
        isScheduled = false
        return nil
    }

    /// The next step if it is a notice. The caller that reported an event can post it at once, without
    /// waiting for the thread that carries out the steps.
    package mutating func nextNotice(at now: ClockReading) -> Notice? {
        let isFirst =
            !isBusy && end == .none && !engine.hasConflict && reports.isEmpty && !isHurried
            && unconnected == nil && !account.isDue(at: now)
            && !(isOpen && reading.isDue(at: now))
        return isFirst ? engine.nextNotice(at: now) : nil
    }

    private mutating func nextStep(at now: ClockReading) -> Step? {
        if end == .reached { return nil }
        if engine.hasConflict { return .decide }
        reportSetAside()
        if !reports.isEmpty {
            let (text, isOfServer) = reports.removeFirst()
            return .report(text, isOfServer: isOfServer)
        }
        if let leadsAt, now.uptime >= leadsAt, !reading.isWanted { reading.want() }
        if end == .none {
            let unnoted = unnotedAccount
            if unnoted != nil, account.failure == nil { account.want() }
            if account.begin(at: now) { return unnoted.map(Step.noteSealed) ?? .readAccount }
            if isOpen, reading.begin(at: now) { return .read(after: engine.diskVersion) }
            if let (account, device) = unconnected {
                unconnected = nil
                return .connect(account, device, generation: engine.generation)
            }
        }
        if isHurried {
            isHurried = false
            engine.handle(.hurry, at: now)
        }
        if let effect = engine.nextEffect(at: now) { return .effect(effect) }
        if end == .none, let step = nextAccountStep(at: now) { return step }
        if isSynchronizing {
            isSynchronizing = false
            return .synchronized(engine.isSaved && diskFailure == nil && isOpen)
        }
        return end == .wanted ? finish() : nil
    }

    private mutating func finish() -> Step {
        if let unused = releaseOpened() { return unused }
        end = .reached
        return .close
    }

    /// The uptime in milliseconds at which time alone makes a step possible; nil means never.
    package var nextWake: Int64? {
        if isBusy || end == .reached { return nil }
        let leadsAt = reading.isWanted ? nil : leadsAt
        return [engine.nextWake, reading.retryAt, account.retryAt, opening.retryAt, leadsAt]
            .compactMap { $0 }.min()
    }

    /// Whether everything is done, for good.
    package var isClosed: Bool { end == .reached }

    /// The reason the disk did not save or could not be read; nil if it worked or was not used.
    var diskFailure: String? { engine.diskFailure ?? reading.failure }

    /// The current sync status.
    package var status: EngineStatus {
        var status = engine.status
        status.diskFailure = diskFailure
        return status
    }
}
