// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// A simulated app: it writes, deletes, batches, exceeds limits, and makes sure of its writes.
final class App {
    unowned let world: World
    /// The deletions of this app that it still sees. They are listed because absent keys have no
    /// mark.
    private var deletions: [Key: Int] = [:]
    /// The values that it saw after it last wrote a key whose writes merge.
    var remembered: [Key: PropertyListValue] = [:]

    /// Answers each refused write with another one that is refused, like an app that rewrites
    /// everything in its handler.
    private let isStubborn: Bool

    init(world: World) {
        self.world = world
        isStubborn = world.chance.perMille(250)
    }

    init(copying other: App) {
        world = other.world
        isStubborn = other.isStubborn
        (deletions, remembered) = (other.deletions, other.remembered)
    }

    /// The store now shows another account's values.
    func turn() {
        deletions = [:]
        remembered = [:]
    }

    func start(_ process: VirtualProcess) {
        world.after(world.chance.interval(mean: world.scenario.workInterval)) { [self] in
            guard process.isAlive, !world.isPeaceful else { return }
            if !process.isStopped { act(process) }
            start(process)
        }
    }

    /// A mix of actions, then makes sure that they are saved.
    func work(_ process: VirtualProcess) {
        for _ in 0..<6 { act(process) }
        if !world.mergedKeys.isEmpty { for _ in 0..<6 { merge(process) } }
        synchronize(process)
    }

    private func act(_ process: VirtualProcess) {
        if !world.mergedKeys.isEmpty, world.chance.perMille(350) { return merge(process) }
        switch world.chance.int(0...99) {
        case 0..<48: set(world.plainKey(), process)
        case 48..<62: remove([world.plainKey()], process)
        case 62..<74: setGroup(process)
        case 74..<78: removeGroup(process)
        case 78..<81: setTooMuch(process)
        case 81..<82: setLongKey(process)
        case 82..<91: synchronize(process)
        case 91..<97: askRoundTrip(process)
        // A burst: only its last value ever needs to be sent.
        default: for _ in 0..<8 { set(world.plainKey(), process) }
        }
    }

    // MARK: - Writing

    private func set(_ key: Key, _ process: VirtualProcess) {
        set(key, padding: world.chance.int(0...40), process)
    }

    func set(_ key: Key, padding: Int, _ process: VirtualProcess) {
        write([key], padding: padding, process)
    }

    private func setGroup(_ process: VirtualProcess) {
        guard let group = world.group() else { return }
        write(group + keyBesides(), padding: world.chance.int(0...20), process)
        // An app that writes at a certain time does so in all copies at once.
        for twin in world.twins(of: process) where world.chance.coin() {
            twin.app.write(group, padding: world.chance.int(0...20), twin)
        }
    }

    /// Writes each of these keys and, at times, a group.
    func write(each keys: [Key], _ process: VirtualProcess) {
        for key in keys { set(key, process) }
        if world.chance.coin() { setGroup(process) }
    }

    /// Removes each of these keys that it sees and, at times, a group.
    func remove(each keys: [Key], _ process: VirtualProcess) {
        for key in keys { remove([key], process) }
        if world.chance.coin() { removeGroup(process) }
    }

    /// At times, a key that is also written alone, perhaps while the transaction waits. Not if
    /// several processes write: their simultaneous writes of one key are not one transaction.
    private func keyBesides() -> [Key] {
        world.scenario.processes == 1 && world.chance.coin() ? [world.plainKey()] : []
    }

    private func setTooMuch(_ process: VirtualProcess) {
        write([world.plainKey()], padding: world.scenario.limits.valueBytesMax + 1, process)
    }

    private func setLongKey(_ process: VirtualProcess) {
        guard let key = try? Key(String(repeating: "k", count: 17)) else { return }
        write([key], padding: 0, process)
    }

    private func remove(_ keys: [Key], _ process: VirtualProcess) {
        write(keys, padding: nil, process)
    }

    private func removeGroup(_ process: VirtualProcess) {
        if let group = world.group() { remove(group, process) }
    }

    /// Writes something for every process to receive, in peace.
    func probe(_ process: VirtualProcess) { set(world.plainKey(), process) }

    /// Makes one transaction.
    /// - Parameter padding: Nil for a deletion.
    private func write(_ keys: [Key], padding: Int?, _ process: VirtualProcess) {
        if padding == nil, keys.allSatisfy({ process.engine[$0] == nil }) { return }
        let batch = world.newWriteNumber()
        let writes = keys.map { key in
            let number = world.newWriteNumber()
            return AppWrite(
                number: number, batch: batch, process: process.number, disk: process.disk.name,
                key: key,
                value: padding.map { Mark(number: number, batch: batch).value(padding: $0) },
                time: world.now, over: Mark(process.engine[key])?.number ?? deletions[key],
                isUnkept: process.unkeptKeys.contains(key))
        }
        var changes: [Key: Content] = [:]
        for write in writes { changes[write.key] = write.value.map(Content.value) ?? .deleted }
        // Taking a change back is a write, whatever the value was before.
        let isRevert = keys.count == 1 && batch.isMultiple(of: 4)
        do throws(LimitViolation) {
            try isRevert ? process.revert(to: changes) : process.write(changes)
        } catch {
            // A key that is too long is not the store's concern.
            if case .keyTooLong = error { return }
            return world.journal.note(.refused(process: process.number, Set(keys)))
        }
        for write in writes { deletions[write.key] = write.value == nil ? write.number : nil }
        world.journal.note(.wrote(process: process.number, writes))
    }

    /// The app's notification handler.
    func notified(_ notice: Notice, _ process: VirtualProcess) {
        guard isStubborn, notice.reason == .quotaViolation, !world.isPeaceful else { return }
        let plain = notice.keys.intersection(world.scenario.plainKeys).sorted()
        for key in plain {
            write([key], padding: world.scenario.limits.valueBytesMax + 1, process)
        }
    }

    // MARK: - Making sure

    private func synchronize(_ process: VirtualProcess) {
        process.synchronize { [world] isSaved in
            guard isSaved, process.isAlive else { return }
            world.journal.note(.synchronized(process: process.number))
        }
    }

    private func askRoundTrip(_ process: VirtualProcess) {
        let waiting = process.engine.waitingRecords
        let id = process.requestSync()
        world.journal.note(.askedRoundTrip(process: process.number, id: id, waiting: waiting))
    }

    func finished(_ id: Int, _ failure: LinkFailure?, _ process: VirtualProcess) {
        guard failure == nil else { return }
        world.journal.note(
            .finishedRoundTrip(
                process: process.number, id: id, values: process.engine.contents,
                waiting: process.engine.waitingRecords))
    }
}
