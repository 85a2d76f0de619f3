// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity

struct AuditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "Show who signed in, revoked, erased, and the like.",
        discussion: """
            The newest first. Accounts and devices go by their IDs, which `ubiquity account list` \
            and `ubiquity device list` show, because the log outlives them. What is repeated within an \
            hour (a failed sign-in: within a minute) is one entry, with how often and when last. For \
            server operators: as with `ubiquity account`.

            JSON: a list of {"number", "time", "deed", "account", "device", "actor", \
            "actorDevice", "count", "last", "detail"}, of which the IDs and "detail" may be null.
            """)

    @Option(help: ArgumentHelp("How many entries.", valueName: "number"))
    var limit = 100

    @OptionGroup var operation: OperatorOptions
    @OptionGroup var json: JSONOption

    func validate() throws {
        guard limit > 0 else { throw ValidationError("--limit needs a number above 0.") }
        try operation.requireCredentialForServer()
    }

    func run() async throws {
        let deeds = try await operation.authority().audit(max: limit)
        if json.isOn { return Output.print(.array(deeds.map(JSON.deed))) }
        if deeds.isEmpty { return Output.note("Nothing was done yet.") }
        let rows = deeds.map { deed in
            [
                Phrase.time(deed.time), deed.deed, deed.account ?? "-", deed.device ?? "-",
                deed.actorDevice.map { "\(deed.actor) \($0)" } ?? deed.actor,
                deed.count == 1 ? "1" : "\(deed.count), last \(Phrase.time(deed.last))",
                deed.detail ?? "-",
            ]
        }
        let table = Table(
            header: ["TIME", "WHAT", "ACCOUNT", "DEVICE", "BY", "TIMES", "DETAIL"], rows: rows)
        Output.print(TerminalText(lines: table.lines))
    }
}

extension JSON {
    fileprivate static func deed(_ deed: ServerDeed) -> JSON {
        .object([
            ("number", .integer(Int(deed.number))), ("time", .string(Phrase.isoTime(deed.time))),
            ("deed", .string(deed.deed)), ("account", .optional(deed.account)),
            ("device", .optional(deed.device)), ("actor", .string(deed.actor)),
            ("actorDevice", .optional(deed.actorDevice)), ("count", .integer(Int(deed.count))),
            ("last", .string(Phrase.isoTime(deed.last))), ("detail", .optional(deed.detail)),
        ])
    }
}
