// SPDX-License-Identifier: Apache-2.0

/// The rules by which the audit log keeps its content, even if somebody tries to flood it.
///
/// An event that is repeated within a window is counted in the existing entry. The devices of an
/// account get a limited number of entries of an action in a window; further ones are counted in
/// the last of them. If the log is too long, the action with the most entries loses its oldest
/// ones, and among these the account with the most. So a flood only pushes out itself.
package struct AuditRule: Hashable, Sendable {
    package var entriesMax: Int

    package init(entriesMax: Int) { self.entriesMax = entriesMax }

    /// The number of entries of one action that the devices of an account get in a window.
    package static let entriesPerAccountMax = 64

    /// The time for which an entry counts repetitions, in milliseconds.
    package static func window(of action: AuditAction) -> Int64 {
        action == .signInFailed ? 60_000 : 3_600_000
    }

    /// - Parameter recent: Entries of the same action and account, the newest first: at least
    ///   ``entriesPerAccountMax`` of those in the window, if there are so many.
    /// - Returns: The new state of the recent entry that counts this one; nil if this one is to be
    ///   added.
    package static func fold(_ entry: AuditEntry, into recent: [AuditEntry]) -> AuditEntry? {
        let open = recent.filter { old in
            (0..<window(of: entry.event.action)).contains(entry.time - old.time)
        }
        if let same = open.first(where: { $0.event == entry.event }) { return same.counting(entry) }
        guard entry.event.actor.device != nil else { return nil }
        let others = open.filter { $0.event.actor.device != nil }
        guard others.count >= entriesPerAccountMax else { return nil }
        return others.first?.counting(entry)
    }

    /// The properties of an entry that trimming considers.
    package struct Line: Hashable, Sendable {
        package var number: Int64
        package var action: AuditAction
        package var account: AccountID?

        package init(number: Int64, action: AuditAction, account: AccountID?) {
            self.number = number
            self.action = action
            self.account = account
        }
    }

    /// - Parameter lines: The whole log.
    /// - Returns: The numbers of the entries to remove, the least valuable first. Includes a few
    ///   more than necessary, so that a full log is not examined for each new entry.
    package func surplus(of lines: [Line]) -> [Int64] {
        guard lines.count > entriesMax else { return [] }
        let newestFirst = lines.sorted { $0.number > $1.number }
        let fair = Self.inTurns(
            Self.inTurns(newestFirst) { [$0.action.rawValue, $0.account?.string ?? ""] },
            by: \.action)
        return fair.dropFirst(entriesMax - entriesMax / 16).reversed().map(\.number)
    }

    /// The first line of each name, then the second of each, and so on.
    private static func inTurns<Name: Hashable>(
        _ lines: [Line], by name: (Line) -> Name
    ) -> [Line] {
        var turns: [Name: Int] = [:]
        let ranked = lines.enumerated().map { index, line in
            let name = name(line)
            turns[name, default: 0] += 1
            return (turn: turns[name]!, index: index, line: line)
        }
        return ranked.sorted { ($0.turn, $0.index) < ($1.turn, $1.index) }.map(\.line)
    }
}

extension AuditEntry {
    /// Adds the count of a later entry, and takes on its event.
    fileprivate func counting(_ later: AuditEntry) -> AuditEntry {
        var sum = self
        sum.event = later.event
        let (counted, isTooMuch) = count.addingReportingOverflow(later.count)
        sum.count = isTooMuch ? .max : counted
        sum.last = max(last, later.last)
        return sum
    }
}
