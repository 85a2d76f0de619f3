// SPDX-License-Identifier: Apache-2.0

import UbiquityCore
import UbiquitySimulation

/// The app of a process, which acts like the simulator's apps.
extension ClientProcess {
    private var chance: Chance { world.chance }

    func work() {
        world.after(chance.interval(mean: world.scenario.workInterval)) { [self] in
            guard isAlive, !world.isPeaceful else { return }
            if !isStopped { act() }
            work()
        }
    }

    private func act() {
        let plain = chance.pick(world.scenario.plainKeys)
        if !world.mergedKeys.isEmpty, chance.perMille(350) { return merge() }
        switch chance.int(0...99) {
        case 0..<46: write([plain], padding: chance.int(0...40))
        case 46..<50: writeOfAnySize(plain)
        case 50..<64: write([plain], padding: nil)
        case 64..<80: writeGroup(padding: chance.int(0...20))
        case 80..<85: writeGroup(padding: nil)
        case 85..<88: write([plain], padding: world.limits.valueBytesMax + 1)
        case 88..<92: synchronizeNow()
        case 92..<96: synchronize()
        // A burst: only its last value ever needs to be sent.
        default: for _ in 0..<6 { write([plain], padding: chance.int(0...40)) }
        }
    }

    /// Writes something for every device to receive, in peace.
    func probe() { write([chance.pick(world.scenario.plainKeys)], padding: 1) }

    /// Each number of digits is as frequent, and so is exactly the limit. The largest are rare.
    private func writeOfAnySize(_ key: Key) {
        let limit = world.limits.valueBytesMax
        let bytes = chance.perMille(200) ? limit : limit >> chance.int(0...limit.bitWidth - 1)
        guard bytes < Self.largeBytes || world.takesLarge() else { return }
        write([key], bytes: bytes)
    }

    private static let largeBytes = 10_000

    private func writeGroup(padding: Int?) {
        guard !world.scenario.groupedKeys.isEmpty else { return }
        write(chance.pick(world.scenario.groupedKeys), padding: padding)
    }

    /// Makes one transaction.
    /// - Parameter padding: Nil for a deletion.
    /// - Parameter bytes: The size that the value counts, if it is enough for a value with a mark.
    private func write(_ keys: [Key], padding: Int? = 0, bytes: Int = 0) {
        if padding == nil, keys.allSatisfy({ state.values[$0] == nil }) { return }
        let batch = world.newWriteNumber()
        let writes = keys.map { key in
            let number = world.newWriteNumber()
            return AppWrite(
                number: number, batch: batch, process: self.number, disk: disk, key: key,
                value: padding.map {
                    let mark = Mark(number: number, batch: batch)
                    let rest = bytes - mark.value(padding: 0).quotaBytes
                    return mark.value(padding: max($0, rest))
                },
                time: world.now, over: Mark(state.values[key])?.number ?? deletions[key])
        }
        write(
            writes.map {
                ClientCommand.Write(key: $0.key, content: $0.value.map(Content.value) ?? .deleted)
            }
        ) { [self] _ in
            for write in writes { deletions[write.key] = write.value == nil ? write.number : nil }
            lastWrite = world.run.lastWrite
            world.note(.wrote(process: number, writes))
        }
    }

    // MARK: - Keys whose writes merge

    private func view(_ key: Key, in state: ClientAnswer.State) -> MergeMove.View {
        MergeMove.View(
            value: state.values[key], records: state.contents.filter { $0.key.whole == key })
    }

    private func merge() {
        let (key, policy) = chance.pick(world.mergedKeys.sorted { $0.key < $1.key })
        let number = world.newWriteNumber()
        let seen = view(key, in: state)
        switch chance.int(0...99) {
        case 0..<7:
            guard state.values[key] != nil else { return }
            perform(MergeMove(erasing: key, policy, number: number, in: seen, chance))
        case 7..<14 where policy != .register || !declaresRule:
            perform(MergeMove(plainly: key, policy, number: number, in: seen))
        default:
            perform(
                MergeMove(
                    key, policy, number: number, remembered: remembered[key], in: seen, chance))
            remembered[key] = state.values[key]
        }
    }

    private func perform(_ move: MergeMove) {
        let write =
            switch move.write {
            case .plain(let content): ClientCommand.Write(key: move.key, content: content)
            case .operation(let operation):
                ClientCommand.Write(
                    key: move.key, content: operation.value.map(Content.value) ?? .deleted,
                    merging: (operation.policy, operation.base))
            }
        self.make(write, move)
    }

    private func make(_ write: ClientCommand.Write, _ move: MergeMove) {
        self.write([write]) { [self] before in
            let (old, new) = (view(move.key, in: before).records, view(move.key, in: state).records)
            guard let act = move.act(from: old, to: new) else {
                guard old != new else { return }
                return world.complain(
                    "device \(device.number) shows records of \(move.key) that do not have what "
                        + "was written: \(new.sorted { $0.key < $1.key })")
            }
            lastWrite = world.run.lastWrite
            world.note(
                .merged(
                    AppOperation(
                        number: move.number, process: number, disk: disk, key: move.key, act: act,
                        seen: state.values[move.key], time: world.now)))
        }
    }
}
