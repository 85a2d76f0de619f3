// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import UbiquityWire

struct AuditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "Show the audit log: sign-ins, revoked devices, deleted accounts, and so on.",
        discussion: """
            The newest entry comes first. Accounts and devices are named by their IDs, which \
            `ubiquity account list` and `ubiquity device list` show, because the log outlives \
            them. An event that is repeated within an hour (a failed sign-in: within a minute) is \
            one entry, with the number of times and the last time. For server operators, with the \
            options of `ubiquity account`.

            JSON: a list of {"number", "time", "deed", "account", "device", "actor", \
            "actorDevice", "count", "last", "detail"}, where the IDs and "detail" may be null.
            """)

    @Option(help: ArgumentHelp("The number of entries.", valueName: "number"))
    var limit = 100

    @OptionGroup var operation: OperatorOptions
    @OptionGroup var json: JSONOption

    func validate() throws {
        guard limit > 0 else { throw ValidationError("--limit must be a number above 0.") }
        try operation.requireCredentialForServer()
    }

    func run() async throws {
        let entries = try await operation.withClient { try await $0.audit(max: limit) }
        let rows = entries.map { entry in
            [
                Phrase.time(entry.first), entry.deed, entry.account.unlessEmpty ?? "-",
                entry.device.unlessEmpty ?? "-",
                entry.actorDevice.unlessEmpty.map { "\(entry.actor) \($0)" } ?? entry.actor,
                entry.times == 1 ? "1" : "\(entry.times), last \(Phrase.time(entry.last))",
                entry.detail.unlessEmpty ?? "-",
            ]
        }
        json.print(
            entries.map(JSON.entry),
            or: Table(
                header: ["TIME", "ACTION", "ACCOUNT", "DEVICE", "BY", "TIMES", "DETAIL"], rows: rows
            ),
            ifEmpty: "The audit log is empty.")
    }
}

extension WireAuditTrail.Entry {
    fileprivate var first: Int64 { Int64(clamping: milliseconds) }
    /// A server of version 0.1.0 has an entry for each occurrence.
    fileprivate var times: Int { max(1, Int(clamping: count)) }
    fileprivate var last: Int64 { Int64(clamping: max(milliseconds, lastMilliseconds)) }
}

extension String {
    fileprivate var unlessEmpty: String? { isEmpty ? nil : self }
}

extension JSON {
    fileprivate static func entry(_ entry: WireAuditTrail.Entry) -> JSON {
        [
            "number": .integer(Int(clamping: entry.number)),
            "time": .string(Phrase.isoTime(entry.first)), "deed": .string(entry.deed),
            "account": .optional(entry.account.unlessEmpty),
            "device": .optional(entry.device.unlessEmpty), "actor": .string(entry.actor),
            "actorDevice": .optional(entry.actorDevice.unlessEmpty), "count": .integer(entry.times),
            "last": .string(Phrase.isoTime(entry.last)),
            "detail": .optional(entry.detail.unlessEmpty),
        ]
    }
}
