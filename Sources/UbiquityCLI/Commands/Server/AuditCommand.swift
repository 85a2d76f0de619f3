// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity

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
        if json.isOn { return Output.print(.array(entries.map(JSON.entry))) }
        if entries.isEmpty { return Output.note("The audit log is empty.") }
        let rows = entries.map { entry in
            [
                Phrase.time(entry.time), entry.action, entry.account ?? "-", entry.device ?? "-",
                entry.actorDevice.map { "\(entry.actor) \($0)" } ?? entry.actor,
                entry.count == 1 ? "1" : "\(entry.count), last \(Phrase.time(entry.last))",
                entry.detail ?? "-",
            ]
        }
        let table = Table(
            header: ["TIME", "WHAT", "ACCOUNT", "DEVICE", "BY", "TIMES", "DETAIL"], rows: rows)
        Output.print(TerminalText(lines: table.lines))
    }
}

extension JSON {
    fileprivate static func entry(_ entry: ServerAuditEntry) -> JSON {
        .object([
            ("number", .integer(Int(entry.number))), ("time", .string(Phrase.isoTime(entry.time))),
            ("deed", .string(entry.action)), ("account", .optional(entry.account)),
            ("device", .optional(entry.device)), ("actor", .string(entry.actor)),
            ("actorDevice", .optional(entry.actorDevice)), ("count", .integer(Int(entry.count))),
            ("last", .string(Phrase.isoTime(entry.last))), ("detail", .optional(entry.detail)),
        ])
    }
}
