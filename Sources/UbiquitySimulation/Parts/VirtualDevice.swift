// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A person's machine: clocks, disks, a sign-in for all its apps, and processes.
package final class VirtualDevice<Program: VirtualProgram>: VirtualLine {
    package let number: Int
    private unowned let world: any VirtualWorld
    package private(set) var state = DeviceState()
    /// The file of the sign-in is temporarily unreadable.
    var isAccountUnreadable = false
    package var clock: VirtualClock
    package private(set) var isOnline = true
    package private(set) var isRunning = true
    private var disks: [DiskReference: VirtualDisk] = [:]
    package private(set) var processes: [Program] = []
    /// The IDs that servers gave this device. A clone has those of its original.
    private var names: [Int: DeviceID] = [:]
    /// The clocks of a machine that was copied while running, at that time.
    private var paused: (clock: VirtualClock, since: Int64)?
    var isPaused: Bool { paused != nil }
    /// Older copies of the disks, to be restored.
    private var backup: [DiskReference: VirtualDisk.Content] = [:]

    /// - Parameter clockError: How far its wall clock is ahead, in milliseconds.
    package init(number: Int, clockError: Int64, world: any VirtualWorld) {
        self.number = number
        self.world = world
        clock = VirtualClock(error: clockError, boot: world.chance.number(), now: world.now)
    }

    package var reading: ClockReading { clock.reading(at: world.now) }

    package func disk(_ store: Int, folder: String) -> VirtualDisk {
        let name = DiskReference(device: number, folder: folder, store: store)
        if let disk = disks[name] { return disk }
        let disk = VirtualDisk(name: name)
        disks[name] = disk
        return disk
    }

    /// Sorted by name.
    package var allDisks: [VirtualDisk] {
        disks.values.sorted {
            ($0.name.folder, $0.name.store) < ($1.name.folder, $1.name.store)
        }
    }

    // MARK: - Processes

    package func add(_ process: Program) { processes.append(process) }

    package func kill(_ process: Program) {
        processes.removeAll { $0 === process }
        process.kill()
    }

    package func crash() {
        isRunning = false
        paused = nil
        while let process = processes.last { kill(process) }
    }

    package func start() {
        guard !isRunning else { return }
        isRunning = true
        clock.reboot(as: world.chance.number(), at: world.now)
    }

    // MARK: - The network

    package func goOffline() {
        guard isOnline else { return }
        isOnline = false
        for process in processes { process.cutStream() }
    }

    package func goOnline() { isOnline = true }

    package func delay(_ direction: Direction) -> Int64 { world.delay(of: number, direction) }

    package var quality: LineQuality { world.quality(of: number) }

    package func strikes(_ fault: Fault) -> Bool { world.strikes(fault, device: number) }

    // MARK: - The person

    /// The account that is signed in.
    package var account: Int? { state.signedIn.flatMap { Int($0.account) } }

    /// - Parameters:
    ///   - accountName: The account's name.
    ///   - deviceName: The device's name.
    ///   - isLocked: Whether it does not get the keys of a sealed account.
    package func signIn(
        _ account: Int, accountName: String? = nil, deviceName: String? = nil,
        isLocked: Bool = false
    ) {
        // As the server draws it, in no order.
        let name = names[account] ?? DeviceID(rawValue: world.chance.number() | 1)
        names[account] = name
        lastAccount = account
        state.signIn(
            SignedInAccount(
                server: "", account: "\(account)", accountName: accountName ?? "\(account)",
                device: "\(name)", deviceName: deviceName ?? "\(number)", credential: ""),
            isSealed: world.keyring(of: account) != nil)
        world.note(.signedIn(device: number, folder: state.folder, account: account))
        notifyProcesses()
        guard !isLocked, let keyring = world.keyring(of: account), state.keyring != keyring else {
            return
        }
        world.after(world.chance.int64(0...30_000)) { [self] in takeKeys() }
    }

    /// The person gives the account's keys to it.
    package func takeKeys() {
        guard let account, let keyring = world.keyring(of: account), state.keyring != keyring else {
            return
        }
        keep(keyring)
    }

    /// A process has heard that the account is sealed.
    package func noteSealed(_ account: ExactString) {
        guard state.sealedAccounts.insert(account).inserted else { return }
        notifyProcesses()
    }

    /// Makes these the account's keys on this device.
    func keep(_ keyring: Keyring) {
        do { try state.keep(keyring) } catch { preconditionFailure("\(error)") }
        notifyProcesses()
    }

    /// Keeps what it knows of the keys of its account.
    func take(_ session: SealingSession) {
        let keyring = state.keyring
        state.sealing = session
        if state.keyring != keyring { notifyProcesses() }
    }

    /// The account that was signed in last.
    private(set) var lastAccount: Int?

    package func signOut(wipes: Bool) {
        if wipes {
            let wiped = state.folder
            guard state.signOutWiping() != nil else { return }
            for disk in allDisks where disk.name.folder == wiped { wipe(disk) }
        } else {
            state.signOut()
        }
        notifyProcesses()
    }

    /// Each process reads the device's state when it hears of a change.
    private func notifyProcesses() {
        for process in processes {
            world.after(world.chance.int64(0...50)) { process.followDevice() }
        }
    }

    /// The folders visited since the peace began.
    private var visited: Set<ExactString> = []

    /// Switches to an account with values here that nobody has looked at since the peace began:
    /// some may be waiting to be sent.
    /// - Returns: False if there is none.
    func visitNextAccount() -> Bool {
        visited.insert(ExactString(state.folder))
        let next = state.folders.sorted { $0.key < $1.key }.first { !visited.contains($0.value) }
        guard let account = next.flatMap({ Int($0.key.string) }) else { return false }
        signIn(account)
        return true
    }

    // MARK: - Disks

    func makeBackup() {
        backup = disks.mapValues(\.content)
        world.note(.copied(device: number))
    }

    /// Replaces all disks by older copies. Call this while no process runs.
    func restore() {
        for disk in allDisks {
            disk.content = backup[disk.name] ?? VirtualDisk.Content()
            world.note(.lost(disk.name))
        }
    }

    package func wipe(_ disk: VirtualDisk) {
        disks[disk.name] = nil
        world.note(.wiped(disk.name))
    }

    func setFull(_ isFull: Bool) { for disk in disks.values { disk.isFull = isFull } }

    func setUnreadable(_ isUnreadable: Bool) {
        for disk in disks.values { disk.isUnreadable = isUnreadable }
    }

    /// Whether a process can start with this store.
    func canOpen(_ store: Int) -> Bool {
        !isAccountUnreadable && !disk(store, folder: state.folder).isUnreadable
    }

    /// Copies another machine, including its clocks once it continues.
    func pause(as original: VirtualDevice<Program>) {
        become(original)
        paused = (original.clock, world.now)
    }

    func resume() {
        guard let (clock, since) = paused else { return }
        paused = nil
        self.clock = clock
        self.clock.sleep(world.now - since)
        world.note(.paused(device: number, milliseconds: world.now - since))
    }

    /// Copies all of another machine's state: IDs, sign-in and disks.
    func become(_ original: VirtualDevice<Program>) {
        state = original.state
        names = original.names
        for disk in original.allDisks {
            self.disk(disk.name.store, folder: disk.name.folder).content = disk.content
        }
        world.note(.cloned(device: number, from: original.number))
    }
}

/// A process with one store, from its device's point of view.
package protocol VirtualProgram: AnyObject {
    /// The device's sign-in has changed.
    func followDevice()

    /// The device lost its connection.
    func cutStream()

    /// Ends it abruptly.
    func kill()
}

/// A device's clocks: the wall clock is wrong and may be set, the uptime only drifts.
package struct VirtualClock: Hashable {
    /// The lead of the wall clock, in milliseconds.
    package var error: Int64
    /// The excess speed of the uptime, in millionths.
    package var drift: Int64 = 0
    package private(set) var boot: UInt64
    private var bootedAt: Int64

    /// - Parameter boot: A number that no other boot of any machine has.
    package init(error: Int64, boot: UInt64, now: Int64) {
        self.error = error
        self.boot = boot
        bootedAt = now
    }

    package func reading(at now: Int64) -> ClockReading {
        let elapsed = now - bootedAt
        return ClockReading(
            wall: now + error, uptime: elapsed + elapsed * drift / 1_000_000, boot: boot)
    }

    /// The first moment at which the uptime has reached this value.
    package func moment(ofUptime uptime: Int64) -> Int64 {
        bootedAt + uptime - uptime * drift / (1_000_000 + drift) + 1
    }

    /// The machine slept for this long: the uptime continues where it was, and the wall clock is
    /// late.
    mutating func sleep(_ milliseconds: Int64) {
        bootedAt += milliseconds
        error -= milliseconds
    }

    package mutating func reboot(as boot: UInt64, at now: Int64) {
        self.boot = boot
        bootedAt = now
    }
}
