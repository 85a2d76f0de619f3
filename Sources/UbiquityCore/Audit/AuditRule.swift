// SPDX-License-Identifier: Apache-2.0

/// What the audit log keeps, whoever wants it washed.
///
/// The same event again within a window is counted in the entry that is there. The devices of an account
/// get so many entries of an action in a window; what comes beyond is counted in the last of them. Of
/// a log that is too long, the action with the most entries loses its oldest, and of these the account
/// with the most: so a flood pushes out only itself.
package struct AuditRule: Hashable, Sendable {
    package var entriesMax: Int

    package init(entriesMax: Int) { self.entriesMax = entriesMax }

    /// Entries of one action that the devices of an account get in a window.
    package static let entriesPerAccountMax = 64

    /// For how long an entry counts what is done again, in milliseconds.
    package static func window(of action: AuditAction) -> Int64 {
        action == .signInFailed ? 60_000 : 3_600_000
    }

    /// - Parameter recent: Entries of the same action and account, the newest first: at least
    ///   ``entriesPerAccountMax`` of those that are in the window, if there are so many.
    /// - Returns: The recent entry that counts this one, as it is to be; nil: this one is added.
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

    /// An entry as far as trimming looks at it.
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
    /// - Returns: The numbers of the entries to remove, the least worth keeping first. Some more than
    ///   are too many, so that a log that is full is not looked through at each entry.
    package func surplus(of lines: [Line]) -> [Int64] {
        guard lines.count > entriesMax else { return [] }
        let newestFirst = lines.sorted { $0.number > $1.number }
        let fair = Self.inTurns(
            Self.inTurns(newestFirst) { [$0.action.rawValue, $0.account?.string ?? ""] },
            by: \.action)
        return fair.dropFirst(entriesMax - entriesMax / 16).reversed().map(\.number)
    }

    /// The first of each name, then the second of each, and so on.
    private static func inTurns<Name: Hashable>(
        _ lines: [Line], by name: (Line) -> Name
    ) -> [Line] {
        var turns: [Name: Int] = [:]
        let ranked = lines.enumerated().map { index, line in
            let turn = turns[name(line), default: 0]
            turns[name(line)] = turn + 1
            return (turn: turn, index: index, line: line)
        }
        return ranked.sorted { ($0.turn, $0.index) < ($1.turn, $1.index) }.map(\.line)
    }
}

extension AuditEntry {
    /// With what the later one counts, as of that one.
    fileprivate func counting(_ later: AuditEntry) -> AuditEntry {
        var sum = self
        sum.event = later.event
        let (counted, isTooMuch) = count.addingReportingOverflow(later.count)
        sum.count = isTooMuch ? .max : counted
        sum.last = max(last, later.last)
        return sum
    }
}
