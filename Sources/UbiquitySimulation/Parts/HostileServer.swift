// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// What a server of sealed accounts that keeps no rule makes of the changes that it sends: values of the past,
/// values in the place of others, damaged ones, and deletions that it dates in the future. And sometimes it says
/// that the account is not sealed.
///
/// Nothing that it does is undone by what it sends later. So of each key of which a device does not show what
/// the server has, the device has to say so.
package final class HostileServer {
    private enum Trick: CaseIterable { case older, swapped, damaged, ahead }

    private let chance: Chance
    /// What has been sent before, sealed.
    private var past: [StoreReference: [Record]] = [:]

    static let pastMax = 200
    /// How far it dates a deletion in the future, in milliseconds: no clock seems wrong by that.
    static let aheadMilliseconds: Int64 = 23 * 3_600_000

    init(_ chance: Chance) { self.chance = chance }

    /// Whether it takes a device without the key for one of an account that is not sealed.
    func forgetsMark() -> Bool { chance.perMille(300) }

    /// - Parameter agreed: The stamp of the newest record of a key on which the receiver has agreed.
    func tamper(
        _ changes: ChangeSet, of store: StoreReference, at now: Int64, agreed: (Key) -> Stamp?
    ) -> ChangeSet {
        defer {
            let boxes = changes.records.filter { $0.content.isSealed && !$0.key.isPart }
            past[store] = Array(((past[store] ?? []) + boxes).suffix(Self.pastMax))
        }
        guard chance.perMille(150) else { return changes }
        var changes = changes
        switch chance.pick(Trick.allCases) {
        case .older:
            let older = (past[store] ?? []).filter { record in
                agreed(record.key).map { record.stamp.withoutDigest < $0.withoutDigest } ?? false
            }
            guard !changes.isWhole, !older.isEmpty else { return changes }
            let record = chance.pick(older)
            changes.records.removeAll { $0.key == record.key }
            changes.records.append(record)
        case .swapped:
            let boxes = changes.records.indices.filter { changes.records[$0].isBox }
            guard boxes.count > 1 else { return changes }
            let (one, other) = (changes.records[boxes[0]], changes.records[boxes[1]])
            changes.records[boxes[0]].content = other.content
            changes.records[boxes[1]].content = one.content
        case .damaged:
            let boxes = changes.records.indices.filter { changes.records[$0].isBox }
            guard let index = boxes.first,
                case .value(.sealed(let box)) = changes.records[index].content
            else { return changes }
            var bytes = box.bytes
            bytes[bytes.count - 1] ^= 1
            changes.records[index].content = .value(
                .sealed(SealedBox(generation: box.generation, bytes: bytes)))
        case .ahead:
            guard !changes.isWhole, let record = (past[store] ?? []).last else { return changes }
            let stamp = Stamp(
                HybridTimestamp(milliseconds: now + Self.aheadMilliseconds), record.stamp.device)
            changes.records.removeAll { $0.key == record.key }
            changes.records.append(Record(key: record.key, content: .deleted, stamp: stamp))
        }
        return changes
    }
}

extension Record {
    fileprivate var isBox: Bool { content.isSealed && !key.isCount }
}
