// SPDX-License-Identifier: Apache-2.0

import TortureLanguage
import UbiquityCore
import UbiquitySimulation

extension Chronicle.State {
    /// The observations that the message means for the checkers.
    mutating func observations(_ message: TortureMessage, _ process: Int) -> [Observation] {
        switch message {
        case .opened(let values):
            guard let disk = disks[process] else { return [] }
            return [.opened(process: process, disk: disk, values: Self.values(values))]
        case .reopened(let values):
            guard let disk = disks[process] else { return [] }
            tally[.reopenings] += 1
            deletions[process] = nil
            // What it had not saved, nobody answers for.
            return [
                .ended(process: process),
                .opened(process: process, disk: disk, values: Self.values(values)),
            ]
        case .writing(let write, let seen, let time):
            return [.wrote(process: process, writes(write, seen, time, process))]
        case .merged(let number, let key, let act, let time):
            guard let disk = disks[process] else { return [] }
            tally[.merges] += 1
            if MergedKeys.policies[key] == .counter { tally[.counts] += 1 }
            return [
                .merged(
                    AppOperation(
                        number: number, process: process, disk: disk, key: key, act: act,
                        seen: nil, time: Chronicle.milliseconds(time)))
            ]
        case .passedOver, .declared, .refused, .roundTripEnded(_, failure: _?),
            .saved(failure: _?):
            count(message)
            return []
        case .saved(failure: nil):
            tally[.saves] += 1
            return [.synchronized(process: process)]
        case .roundTripBegun(let number):
            return [.askedRoundTrip(process: process, id: number, waiting: [])]
        case .roundTripEnded(let number, failure: nil):
            tally[.roundTrips] += 1
            return [
                .finishedRoundTrip(process: process, id: number, values: [:], waiting: [])
            ]
        case .notified(let reason, let keys, let values):
            return notified(process, reason, keys, values)
        case .shows(let view):
            return [.rested(process: process, values: view.values)]
        }
    }

    static func values(_ texts: [String: String]) -> [Key: PropertyListValue] {
        texts.reduce(into: [:]) { values, entry in
            guard let key = try? Key(entry.key) else { return }
            values[key] = .string(ExactString(entry.value))
        }
    }

    private mutating func count(_ message: TortureMessage) {
        switch message {
        case .roundTripEnded: tally[.failedRoundTrips] += 1
        case .saved: tally[.failedSaves] += 1
        default: break
        }
    }

    private mutating func writes(
        _ write: TortureWrite, _ seen: [String: String], _ time: UInt64, _ process: Int
    ) -> [AppWrite] {
        guard let disk = disks[process] else { return [] }
        tally[.writes] += write.keys.count
        if write.padding == nil { tally[.deletions] += write.keys.count }
        if write.keys.count > 1 { tally[.batches] += 1 }
        return write.keys.enumerated().compactMap { place, name in
            guard let key = try? Key(name) else { return nil }
            let number = write.first + place
            let value = write.text(at: place).map { PropertyListValue.string(ExactString($0)) }
            let before = seen[name].flatMap { Mark(.string(ExactString($0))) }?.number
            let over = before ?? deletions[process]?[key]
            deletions[process, default: [:]][key] = value == nil ? number : nil
            return AppWrite(
                number: number, batch: write.batch, process: process, disk: disk, key: key,
                value: value, time: Chronicle.milliseconds(time), over: over)
        }
    }

    /// - Parameter texts: All values, of the moment when the observer was called.
    private mutating func notified(
        _ process: Int, _ reason: Int?, _ names: [String], _ texts: [String: String]
    ) -> [Observation] {
        tally[.notifications] += 1
        let keys = Set(names.compactMap { try? Key($0) })
        let all = Self.values(texts)
        var values: [Key: PropertyListValue?] = [:]
        for key in keys { values[key] = .some(all[key]) }
        return [
            .notified(process: process, Notice(Self.reason(reason), keys), values),
            .rested(process: process, values: all),
        ]
    }

    private static func reason(_ number: Int?) -> Notice.Reason {
        switch number {
        case 0: .serverChange
        case 1: .initialSync
        case 2: .quotaViolation
        case 3: .accountChange
        default: .ownWrite
        }
    }
}
