// SPDX-License-Identifier: Apache-2.0

internal import Testing
internal import UbiquityCore

/// The audit log's rules against flooding.
struct AuditRuleTests {
    private static let ada = AccountID(rawValue: 0xADA)

    private static func device(_ number: Int) -> DeviceID { DeviceID(rawValue: UInt64(number)) }

    private static func renamed(
        _ number: Int, of account: AccountID = ada, at time: Int64
    ) -> AuditEntry {
        let id = device(number)
        return AuditEntry(AuditEvent(.deviceRenamed, of: account, id, by: .device(id)), at: time)
    }

    /// A log to which these entries are added in order, with trimming.
    private static func log(
        of entries: some Sequence<AuditEntry>, max: Int = .max
    ) -> [AuditEntry] {
        var log: [AuditEntry] = []
        var number: Int64 = 0
        for entry in entries {
            let recent = log.reversed().filter {
                $0.event.action == entry.event.action && $0.event.account == entry.event.account
            }.prefix(AuditRule.entriesPerAccountMax)
            if let sum = AuditRule.fold(entry, into: Array(recent)) {
                log[log.firstIndex { $0.number == sum.number }!] = sum
            } else {
                number += 1
                log.append(AuditEntry(number: number, entry.event, at: entry.time))
            }
        }
        let lines = log.map {
            AuditRule.Line(
                number: $0.number, action: $0.event.action, account: $0.event.account)
        }
        let surplus = Set(AuditRule(entriesMax: max).surplus(of: lines))
        return log.filter { !surplus.contains($0.number) }
    }

    @Test func `a device that renames itself a hundred thousand times is in the log once an hour`()
    {
        let log = Self.log(of: (0..<100_000).lazy.map { Self.renamed(1, at: 60 * Int64($0)) })
        #expect(log.map(\.time) == [0, 3_600_000])
        #expect(log.map(\.count) == [60_000, 40_000])
        #expect(log.map(\.last) == [59_999 * 60, 99_999 * 60])
    }

    @Test func `the devices of an account have so many entries an hour, and others none the fewer`()
        throws
    {
        let flood = (0..<1_000).map { Self.renamed($0, at: Int64($0)) }
        let log = Self.log(of: flood + [Self.renamed(1, of: AccountID(rawValue: 0xB0B), at: 1_000)])
        #expect(log.count == AuditRule.entriesPerAccountMax + 1)
        let last = try #require(log.dropLast().last)
        #expect(last.event.device == Self.device(999))
        #expect(last.time == 63 && last.last == 999)
        #expect(log.reduce(0) { $0 + $1.count } == 1_001)
        #expect(log.last?.event.account == AccountID(rawValue: 0xB0B))
    }

    @Test func `what an operator does is in the log by itself, unless it is the same again`() {
        let entries = (0..<200).map { number in
            AuditEntry(
                AuditEvent(
                    .deviceRevoked, of: Self.ada, Self.device(number / 2), by: .operatorLocally),
                at: Int64(number))
        }
        let log = Self.log(of: entries)
        #expect(log.count == 100)
        #expect(log.allSatisfy { $0.count == 2 })
    }

    @Test func `failed sign-ins are counted by address and minute`() {
        let entries = (0..<300).map { second in
            AuditEntry(
                AuditEvent(
                    .signInFailed, by: .stranger,
                    detail: second.isMultiple(of: 3) ? "192.0.2.1" : "192.0.2.2"),
                at: Int64(second) * 1_000)
        }
        let log = Self.log(of: entries)
        #expect(log.count == 10)
        #expect(Set(log.map(\.count)) == [20, 40])
    }

    @Test func `a clock that is set back or forward folds nothing into another time`() {
        let times: [Int64] = [5_000_000_000, 1_000, 2_000, 9_000_000_000]
        let log = Self.log(of: times.map { Self.renamed(1, at: $0) })
        #expect(log.map(\.time) == [5_000_000_000, 1_000, 9_000_000_000])
        #expect(log.map(\.count) == [1, 2, 1])
    }

    @Test func `a flood of one action pushes out only itself`() {
        let quiet = AuditEntry(
            AuditEvent(.accountErased, of: Self.ada, by: .operatorByCredential), at: 0)
        let flood = (1...1_000).map { number in
            AuditEntry(
                AuditEvent(.signInFailed, by: .stranger, detail: "address \(number)"),
                at: Int64(number))
        }
        let log = Self.log(of: [quiet] + flood, max: 320)
        #expect(log.count == 300)
        #expect(log.first?.event == quiet.event)
        #expect(log.last?.time == 1_000)
    }

    @Test func `a flood of one account pushes out only its own entries of that action`() {
        let hours = (0..<20).flatMap { hour in
            (0..<64).map { Self.renamed($0, at: Int64(hour) * 3_600_000 + Int64($0)) }
        }
        let bob = Self.renamed(7, of: AccountID(rawValue: 0xB0B), at: -1)
        let log = Self.log(of: [bob] + hours, max: 400)
        #expect(log.count == 375)
        #expect(log.first?.event == bob.event)
        #expect(log[1].number == 908)
    }

    @Test func `a log without a flood loses its oldest entries`() {
        let lines = (1...20).map { number in
            AuditRule.Line(
                number: Int64(number),
                action: number.isMultiple(of: 2) ? .codeMade : .deviceSignedIn,
                account: AccountID(rawValue: UInt64(number / 2)))
        }
        #expect(AuditRule(entriesMax: 20).surplus(of: lines).isEmpty)
        #expect(AuditRule(entriesMax: 6).surplus(of: lines) == (1...14).map { Int64($0) })
        #expect(AuditRule(entriesMax: 16).surplus(of: lines) == (1...5).map { Int64($0) })
        #expect(AuditRule(entriesMax: 0).surplus(of: lines).count == 20)
    }
}
