// SPDX-License-Identifier: Apache-2.0

internal import Ubiquity
internal import UbiquityCore
internal import UbiquitySimulation

/// A store's file as opened by one process.
///
/// Shared state, for `@unchecked Sendable`: all of it, guarded by the world's turn, which every
/// call holds.
final class VirtualFile: LocalStorage, VirtualDiskUser, @unchecked Sendable {
    private let disk: VirtualDisk
    private let machine: TestMachine
    private var changed: (@Sendable () -> Void)?
    private var lead: (@Sendable () -> Void)?

    init(_ disk: VirtualDisk, of machine: TestMachine) {
        self.disk = disk
        self.machine = machine
    }

    // MARK: - The file

    func watch(changed: @escaping @Sendable () -> Void) { self.changed = changed }

    func whenLeading(_ body: @escaping @Sendable () -> Void) {
        lead = body
        disk.open(by: self)
    }

    func close() {
        (changed, lead) = (nil, nil)
        disk.close(by: self)
    }

    func becomeLeader(of disk: VirtualDisk) { lead?() }

    func lookAtDisk() { changed?() }

    // MARK: - Content

    func load() throws -> DiskChanges { disk.changes(after: -1) }

    func changes(after version: Int64) throws -> DiskChanges? {
        disk.version == version ? nil : disk.changes(after: version)
    }

    func save(_ batch: SaveBatch) throws -> SaveOutcome {
        if machine.isDiskFull {
            throw LocalStorageError(.diskFull, path: "\(disk.name)", cause: "the test says so")
        }
        let outcome = disk.save(batch)
        if case .saved = outcome { signalCommit() }
        return outcome
    }

    private func signalCommit() {
        for user in disk.processes where user !== self {
            machine.world.after(machine.world.chance.int64(0...5)) { user.lookAtDisk() }
        }
    }

    func refusedWrites() throws -> [RefusedWrite] { disk.content.saved.refused }

    func forgetRefusedWrites() throws { disk.content.saved.forgetRefusedWrites() }

    func tidy() {}
}
