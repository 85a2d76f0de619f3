// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// Failed sign-ins, counted by address, to be stored a minute later: a guess costs no write.
///
/// State: `entries`, guarded by its lock. There are as many as the allowances for sign-ins let in.
final class FailedSignIns: Sendable {
    /// Those of further addresses count together.
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

    /// - Parameter now: Nil: all; else those whose minute is over.
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
