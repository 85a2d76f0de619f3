// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// Failed sign-ins, counted by address and stored a minute later, so that a guess does not cost a
/// write.
///
/// State: `entries`, guarded by its lock. The allowances for sign-ins limit their number.
final class FailedSignIns: Sendable {
    /// Sign-ins from further addresses are counted together.
    private static let addressesMax = 1_024

    private let entries = Mutex<[AuditEvent: AuditEntry]>([:])

    func count(_ address: String, now: Int64) {
        entries.withLock { entries in
            var event = AuditEvent(.signInFailed, by: .stranger, detail: address)
            if entries.count >= Self.addressesMax, entries[event] == nil { event.detail = nil }
            guard var entry = entries[event] else {
                entries[event] = AuditEntry(event, at: now)
                return
            }
            entry.count += 1
            entry.last = now
            entries[event] = entry
        }
    }

    /// - Parameter now: The current time, to take the entries whose minute is over; nil to take
    ///   all.
    func take(now: Int64?) -> [AuditEntry] {
        entries.withLock { entries in
            let due = entries.filter { event, entry in
                now.map { !(0..<AuditRule.window(of: event.action)).contains($0 - entry.time) }
                    ?? true
            }
            for event in due.keys { entries[event] = nil }
            return due.values.sorted { $0.time < $1.time }
        }
    }
}
