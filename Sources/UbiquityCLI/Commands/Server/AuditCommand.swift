// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import UbiquityCore
import UbiquityWire

struct AuditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "Show the audit log: sign-ins, revoked devices, deleted accounts, and so on.",
        discussion: """
            The newest entry comes first. Accounts and devices have their present names, and \
            their IDs if they do not exist any more: the log outlives them. An event that is repeated within an hour (a failed sign-in: within a minute) is \
            one entry, with the number of times and the last time. For server operators, with the \
            options of `ubiquity account`.

            JSON: a list of {"number", "time", "deed", "account", "accountName", "device", \
            "deviceName", "actor", "actorDevice", "actorDeviceName", "count", "last", "detail"}, \
            where the IDs, the names and "detail" may be null.
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
        let (entries, names) = try await operation.withClient { client in
            (try await client.audit(max: limit), await AuditNames(client))
        }
        let rows = entries.map { entry in
            [
                Phrase.time(entry.first), entry.deed, names.shown(entry.account) ?? "-",
                names.shown(entry.device, of: entry.account) ?? "-",
                names.shown(entry.actorDevice, of: entry.account).map { "\(entry.actor) \($0)" }
                    ?? entry.actor,
                entry.times == 1 ? "1" : "\(entry.times), last \(Phrase.time(entry.last))",
                entry.detail.unlessEmpty ?? "-",
            ]
        }
        json.print(
            entries.map { JSON.entry($0, names) },
            or: Table(
                header: ["TIME", "ACTION", "ACCOUNT", "DEVICE", "BY", "TIMES", "DETAIL"], rows: rows
            ),
            ifEmpty: "The audit log is empty.")
    }
}

/// The present names of accounts and devices, by their IDs.
private struct AuditNames {
    private var accounts: [String: String] = [:]
    private var devices: [[String]: String] = [:]

    /// Without names if the server does not give them.
    init(_ client: OperatorClient) async {
        for account in (try? await client.accounts()) ?? [] {
            accounts[account.id] = account.name
            for device in account.devices { devices[[account.id, device.id]] = device.name }
        }
    }

    func name(_ account: String) -> String? { accounts[account] }
    func name(_ device: String, of account: String) -> String? { devices[[account, device]] }

    /// Nil for none.
    func shown(_ account: String) -> String? { name(account)?.listed ?? account.unlessEmpty }

    func shown(_ device: String, of account: String) -> String? {
        name(device, of: account)?.listed ?? device.unlessEmpty
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
    fileprivate static func entry(_ entry: WireAuditTrail.Entry, _ names: AuditNames) -> JSON {
        [
            "number": .integer(Int(clamping: entry.number)),
            "time": .string(Phrase.isoTime(entry.first)), "deed": .string(entry.deed),
            "account": .optional(entry.account.unlessEmpty),
            "accountName": .optional(names.name(entry.account)),
            "device": .optional(entry.device.unlessEmpty),
            "deviceName": .optional(names.name(entry.device, of: entry.account)),
            "actor": .string(entry.actor),
            "actorDevice": .optional(entry.actorDevice.unlessEmpty),
            "actorDeviceName": .optional(names.name(entry.actorDevice, of: entry.account)),
            "count": .integer(entry.times),
            "last": .string(Phrase.isoTime(entry.last)),
            "detail": .optional(entry.detail.unlessEmpty),
        ]
    }
}
