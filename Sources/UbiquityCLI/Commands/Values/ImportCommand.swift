// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore

struct ImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract:
            "Import a property list, such as an app's preferences, JSON, or an account's export.",
        discussion: """
            Imports property lists, in XML and in the binary form, and JSON: an object with the \
            keys and values, plain or as `ubiquity export --exact` and the page write it. In plain \
            JSON, 1 is an integer, 1.0 a real number, and dates and data stay strings. All entries \
            that differ become one change: here, on the server, and for other devices; several if \
            they are too many for one request. Other keys in the store stay.

            What is not well-formed is refused, with its line or byte. The old text form that \
            `defaults read` prints cannot be imported: use what `defaults export DOMAIN -` prints.

            --dry-run shows the keys that would be overwritten (~) or added (+), with their values \
            before and after.

            If a store cannot take some entries, they are listed with the reason and the place, \
            and nothing is imported; --skip-invalid imports the others.

            A file from `ubiquity account export` is recognised by its content. All its \
            stores are imported, each as one change, or one of them with --store.

            JSON: {"store", "imported", "unchanged", "skipped", "sent", "notSentBecause"}; \
            "unchanged" counts keys that already had their value, and "skipped" lists {"key", \
            "path", "reason"}. With --dry-run also "changes", a list of {"key", "before", \
            "after"}. For an account: a list of such objects.
            """)

    @Argument(
        help: "The property list, JSON or account; - for standard input.", completion: .file(),
        transform: notEmpty)
    var file: String

    @Flag(help: "Import the entries that the store can take, and list the others.")
    var skipInvalid = false

    @Flag(help: "Show what would be imported, without importing anything.")
    var dryRun = false

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup(title: "Server") var sync: SyncOptions
    @OptionGroup var json: JSONOption

    func run() async throws {
        if let account = try AccountImport(file) { return try await importAccount(account) }
        let data = try await Progress.showing("Reading \(InputFile.name(file))") {
            try InputFile.read(file)
        }
        if let account = AccountImport(data, name: InputFile.name(file)) {
            return try await importAccount(account)
        }
        let entries = try PropertyListFile.read(
            data, name: InputFile.name(file), takesJSON: true)
        try await OpenStore.with(store, sync.policy, ifMissing: dryRun ? .imagine : .make) { open in
            // Otherwise a device that has never synced would know neither the account's limits nor
            // its values, to which its own would yield.
            await open.catchUp()
            let plan = ImportPlan(entries, limits: open.store.engineStatus.limits)
            try check(plan)
            try report(try await take(plan, into: open))
        }
    }

    func check(_ plan: ImportPlan) throws {
        guard !plan.rejected.isEmpty else { return }
        let count = plan.rejected.count
        let entries = count == 1 ? "1 entry" : "\(Phrase.grouped(count)) entries"
        let list = plan.rejected.map(\.line).joined(separator: "\n")
        guard skipInvalid else {
            throw Failure(
                .badInput,
                "\(entries) cannot be imported, and nothing was imported; --skip-invalid imports "
                    + "the rest:\n"
                    + list)
        }
        Output.note(TerminalText(lines: "Skipped \(entries):\n\(list)"))
    }

    func take(_ plan: ImportPlan, into open: OpenStore) async throws -> ImportedStore {
        let changes = plan.comparison(with: open.store.values)
        return ImportedStore(
            identifier: open.identifier, imported: changes.count,
            unchanged: plan.accepted.count - changes.count, skipped: plan.rejected,
            changes: changes, outcome: try await write(ValueChange.contents(changes), to: open))
    }

    private func write(
        _ changes: [Key: Content], to open: OpenStore
    ) async throws -> WriteOutcome {
        do { return try await open.write(changes, isDryRun: dryRun) } catch let violation
            as LimitViolation
        {
            let result = dryRun ? "nothing would be imported" : "nothing was imported"
            throw Failure(.badInput, "\(result) into \(open.identifier): \(violation.excess)")
        }
    }

    private func report(_ store: ImportedStore) throws {
        if let note = store.outcome.note { Output.note(TerminalText(note)) }
        if json.isOn { Output.print(json(store)) }
        try store.outcome.check()
        if json.isOn { return }
        guard dryRun else { return Output.print("Imported \(store.counts).") }
        guard !store.changes.isEmpty else { return Output.print("Would import \(store.counts).") }
        Output.print(ValueChange.lines(store.changes))
        let count = Phrase.keys(store.imported)
        Output.print("Would import \(count): \(ValueChange.summary(store.changes)).")
    }

    func json(_ store: ImportedStore) -> JSON {
        let changes = JSON.array(store.changes.map(\.json))
        return .object(store.fields + (dryRun ? [("changes", changes)] : []))
    }
}
