// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// A machine of a person: clocks, disks, a sign-in for all its apps, and processes.
final class VirtualDevice {
    let number: Int
    private unowned let world: World
    private(set) var state = DeviceState()
    var clock: VirtualClock
    private(set) var isOnline = true
    private(set) var isRunning = true
    private var disks: [DiskName: VirtualDisk] = [:]
    private(set) var processes: [VirtualProcess] = []
    /// The names that servers gave this device; a clone has those of its original.
    private var names: [Int: DeviceID] = [:]
    /// Older copies of the disks, to be restored.
    private var backup: [DiskName: VirtualDisk.Content] = [:]

    init(number: Int, world: World) {
        self.number = number
        self.world = world
        let hours = Int64(world.scenario.skewHoursMax) * 3_600_000
        clock = VirtualClock(
            error: world.chance.int64(-hours...hours), boot: world.chance.number(), now: world.now)
    }

    var reading: ClockReading { clock.reading(at: world.now) }

    func disk(_ store: Int, folder: String) -> VirtualDisk {
        let name = DiskName(device: number, folder: folder, store: store)
        if let disk = disks[name] { return disk }
        let disk = VirtualDisk(name: name)
        disks[name] = disk
        return disk
    }

    /// In the order of their names.
    var allDisks: [VirtualDisk] {
        disks.values.sorted {
            ($0.name.folder, $0.name.store) < ($1.name.folder, $1.name.store)
        }
    }

    // MARK: - Processes

    func launch(store: Int) {
        guard isRunning else { return }
        processes.append(VirtualProcess(device: self, store: store, world: world))
    }

    func kill(_ process: VirtualProcess) {
        processes.removeAll { $0 === process }
        process.kill()
    }

    func crash() {
        isRunning = false
        while let process = processes.last { kill(process) }
    }

    func start() {
        guard !isRunning else { return }
        isRunning = true
        clock.reboot(as: world.chance.number(), at: world.now)
    }

    // MARK: - The network

    func goOffline() {
        guard isOnline else { return }
        isOnline = false
        for process in processes { process.cutStream() }
    }

    func goOnline() { isOnline = true }

    // MARK: - The person

    /// The account that is signed in.
    var account: Int? { state.signedIn.flatMap { Int($0.account) } }

    func signIn(_ account: Int) {
        let name = names[account] ?? world.newDeviceName()
        names[account] = name
        lastAccount = account
        state.signIn(
            SignedInAccount(
                server: "", account: "\(account)", accountName: "\(account)", device: "\(name)",
                deviceName: "\(number)", credential: ""))
        world.journal.note(.signedIn(device: number, folder: state.folder, account: account))
        tellProcesses()
    }

    /// Who was signed in last.
    private(set) var lastAccount: Int?

    func signOut(wipes: Bool) {
        if wipes {
            let wiped = state.folder
            guard state.signOutWiping() != nil else { return }
            for disk in allDisks where disk.name.folder == wiped { wipe(disk) }
        } else {
            state.signOut()
        }
        tellProcesses()
    }

    /// Each process looks at the device's state when it hears of a change.
    private func tellProcesses() {
        for process in processes {
            world.after(world.chance.int64(0...50)) { process.followDevice() }
        }
    }

    /// The folders that had their turn in peace.
    private var visited: Set<String> = []

    /// Turns to an account that has values here which nobody has looked at since the peace began:
    /// some may wait to be sent.
    /// - Returns: False if there is none.
    func visitNextAccount() -> Bool {
        visited.insert(state.folder)
        let next = state.folders.sorted { $0.key < $1.key }.first { !visited.contains($0.value) }
        guard let account = next.flatMap({ Int($0.key) }) else { return false }
        signIn(account)
        return true
    }

    // MARK: - Disks

    func makeBackup() {
        backup = disks.mapValues(\.content)
        world.journal.note(.copied(device: number))
    }

    /// An older copy takes the place of all disks; to be called while no process runs.
    func restore() {
        for disk in allDisks {
            disk.content = backup[disk.name] ?? VirtualDisk.Content()
            world.journal.note(.lost(disk.name))
        }
    }

    private func wipe(_ disk: VirtualDisk) {
        disks[disk.name] = nil
        world.journal.note(.wiped(disk.name))
    }

    func setFull(_ isFull: Bool) { for disk in disks.values { disk.isFull = isFull } }

    /// Takes over all that another machine has: names, sign-in and disks.
    func become(_ original: VirtualDevice) {
        state = original.state
        names = original.names
        for disk in original.allDisks {
            self.disk(disk.name.store, folder: disk.name.folder).content = disk.content
        }
        world.journal.note(.cloned(device: number, from: original.number))
    }
}
