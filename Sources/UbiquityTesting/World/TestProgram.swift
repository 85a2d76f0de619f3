// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization
internal import Ubiquity
internal import UbiquityCore
internal import UbiquitySimulation

/// One store that a process has open: the class that ships, on a virtual device.
///
/// Shared state, for `@unchecked Sendable`: all of it, guarded by the world's turn.
final class TestProgram: VirtualProgram, @unchecked Sendable {
    let process: String
    let identifier: String
    let machine: TestMachine
    /// Nil once it has ended.
    private(set) var store: UbiquitousKeyValueStore?
    private var queues: [VirtualQueue] = []
    private var files: [VirtualFile] = []
    private var links: [VirtualLink] = []
    private var accountChanged: (@Sendable () -> Void)?
    private var observer: (any NSObjectProtocol)?

    /// - Throws: ``UbiquityError``.
    init(
        process: String, identifier: String, machine: TestMachine,
        configuration: UbiquityConfiguration
    ) throws {
        self.process = process
        self.identifier = identifier
        self.machine = machine
        let store = try UbiquitousKeyValueStore(
            on: self, runtime: makeRuntime(), configuration: configuration)
        self.store = store
        observe(store)
    }

    private var world: TestWorld { machine.world }

    private func makeRuntime() -> StoreRuntime {
        let owner = "the process \"\(process)\" on \"\(machine.name)\""
        let (driver, notices) = (
            VirtualQueue(world, owner: owner), VirtualQueue(world, owner: owner, isForNotices: true)
        )
        queues = [driver, notices]
        return StoreRuntime(
            driverQueue: driver, noticeQueue: notices,
            now: { [machine] in machine.reading }, seed: world.chance.number())
    }

    private func observe(_ store: UbiquitousKeyValueStore) {
        observer = NotificationCenter.default.addObserver(
            forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
            queue: nil
        ) { [machine, process, identifier] notification in
            machine.note(
                TestNotification(
                    notification, process: process, store: identifier,
                    date: Date(milliseconds: machine.world.now)))
        }
    }

    // MARK: - For its device

    func followDevice() { accountChanged?() }

    func cutStream() { for stream in openStreams { stream.cut() } }

    var openStreams: [VirtualStream] { links.flatMap(\.openStreams) }

    /// Saves and closes everything.
    func quit() {
        store?.close()
        machine.device.kill(self)
    }

    func kill() {
        store?.abandon()
        store = nil
        accountChanged = nil
        for queue in queues { queue.end(isTest: world.isOver) }
        for link in links { link.end() }
        for file in files { file.close() }
        (links, files) = ([], [])
        if let observer { NotificationCenter.default.removeObserver(observer) }
        observer = nil
    }

    // MARK: - Settling

    /// A pending operation that will complete under the current conditions; nil if there is none.
    var unsettled: String? {
        guard let store, machine.device.account != nil, machine.isConnectable, !machine.isDiskFull
        else { return nil }
        let status = store.engineStatus
        // A person has to do something about a sealed account whose key it does not have.
        switch status.link.state {
        case .locked, .waiting: if !machine.hasKey { return nil }
        default: break
        }
        let isConnected = !status.isLeading || status.link.state == .connected
        let isIdle = status.pendingKeys.isEmpty && status.diskFailure == nil
        if status.isSignedIn, isConnected, isIdle, !openStreams.contains(where: \.isHalfOpen) {
            return nil
        }
        return sentence(of: status)
    }

    private func sentence(of status: EngineStatus) -> String {
        let keys = status.pendingKeys.sorted().map { "\"\($0)\"" }.joined(separator: ", ")
        let causes = [
            keys.isEmpty ? nil : "waits to send \(keys)", status.link.lastError, status.diskFailure,
        ]
        return "\(identifier) of \"\(process)\" on \"\(machine.name)\" is \(status.link.state): "
            + causes.compactMap(\.self).joined(separator: ", ")
    }
}

/// The device from the store's point of view.
extension TestProgram: StoreDevice {
    func current() throws -> DeviceState { machine.device.state }

    func noteSealed(_ account: ExactString) -> DeviceState {
        machine.device.noteSealed(account)
        return machine.device.state
    }

    func watch(changed: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        accountChanged = changed
        return { [weak self] in self?.stopFollowing() }
    }

    private func stopFollowing() { world.inTurn { accountChanged = nil } }

    func openFile(_ name: String, folder: String) throws -> any LocalStorage {
        let disk = machine.device.disk(world.number(ofStore: identifier), folder: folder)
        let file = VirtualFile(disk, of: machine)
        files.append(file)
        return file
    }

    func leader(of name: String, folder: String) -> String? { nil }

    func link(
        to store: StoreIdentifier, of account: SignedInAccount, generation: UInt32
    ) -> any StoreLink {
        let name = StoreReference(
            account: Int(account.account) ?? 0, store: world.number(ofStore: identifier))
        let link = VirtualLink(
            to: name, as: DeviceID(account.device) ?? .unassigned, generation: generation,
            of: machine)
        links.append(link)
        return link
    }
}
