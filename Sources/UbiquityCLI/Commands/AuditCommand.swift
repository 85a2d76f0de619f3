// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity

struct AuditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "Show who signed in, revoked, erased, and the like.",
        discussion: """
            The newest first. Accounts and devices go by their IDs, which `ubiquity account list` \
            and `ubiquity device list` show, for the trail outlives them. For who runs the server: \
            as with `ubiquity account`.

            JSON: a list of {"number", "time", "deed", "account", "device", "actor", \
            "actorDevice"}, of which the IDs may be null.
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
            ]
        }
        let table = Table(header: ["TIME", "WHAT", "ACCOUNT", "DEVICE", "BY"], rows: rows)
        Output.print(TerminalText(lines: table.lines))
    }
}

extension JSON {
    fileprivate static func deed(_ deed: ServerDeed) -> JSON {
        .object([
            ("number", .integer(Int(deed.number))), ("time", .string(Phrase.isoTime(deed.time))),
            ("deed", .string(deed.deed)), ("account", .optional(deed.account)),
            ("device", .optional(deed.device)), ("actor", .string(deed.actor)),
            ("actorDevice", .optional(deed.actorDevice)),
        ])
    }
}
