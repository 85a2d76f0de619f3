// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityArchive
import UbiquityCore

struct ImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Import a property list, such as an app's preferences, or an account's archive.",
        discussion: """
            Imports XML and binary property lists. All entries become one change: here, on the \
            server, and for other devices. Other keys in the store stay.

            --dry-run shows the keys that would be overwritten (~) or added (+), with their values \
            before and after.

            If a store cannot take some entries, they are listed with the reason, and nothing is \
            imported; --skip-invalid imports the others.

            An archive from `ubiquity account export` is recognised by its content. All its \
            stores are imported, each as one change, or one of them with --store; keys that \
            already have their value are not written.

            JSON: {"imported", "skipped", "sent", "notSentBecause"}; "skipped" lists {"key", \
            "path", "reason"}. With --dry-run also "changes", a list of {"key", "before", \
            "after"}. For an archive: a list of such objects, with "store" and "unchanged".
            """)

    @Argument(
        help: "The property list or archive; - for standard input.", completion: .file(),
        transform: notEmpty)
    var file: String

    @Flag(help: "Import the entries that the store can take, and list the others.")
    var skipInvalid = false

    @Flag(help: "Say what would be imported, and import nothing.")
    var dryRun = false

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup(title: "Server") var sync: SyncOptions
    @OptionGroup var json: JSONOption

    func run() async throws {
        if let archive = try ArchiveFile(file) { return try await importArchive(archive) }
        let data = try await Progress.showing("Reading \(InputFile.name(file))") {
            try InputFile.read(file)
        }
        if Archive.isArchive([UInt8](data.prefix(Archive.beginningBytes))) {
            return try await importArchive(ArchiveFile([UInt8](data)))
        }
        let entries = try PropertyListFile.read(data, name: InputFile.name(file))
        try await OpenStore.with(store, sync.policy) { open in
            // Otherwise a device that has never synced would know neither the account's limits nor
            // its values, to which its own would yield.
            await open.catchUp()
            let plan = ImportPlan(entries, limits: open.store.engineStatus.limits)
            try check(plan)
            let changes = plan.comparison(with: open.store.values)
            let outcome = try await Progress.showing("Importing \(Phrase.keys(entries.count))") {
                try await write(plan.changes, to: open)
            }
            report(plan, changes, outcome)
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

    /// - Parameter store: The name of the store in errors; nil if there is only one.
    func write(
        _ changes: [Key: Content], to open: OpenStore, named store: String? = nil
    ) async throws -> WriteOutcome {
        do { return try await open.write(changes, isDryRun: dryRun) } catch let violation
            as LimitViolation
        {
            let result = dryRun ? "nothing would be imported" : "nothing was imported"
            let place = store.map { " into \($0)" } ?? ""
            throw Failure(.badInput, "\(result)\(place): \(violation.excess)")
        }
    }

    private func report(_ plan: ImportPlan, _ changes: [ValueChange], _ outcome: WriteOutcome) {
        if let note = outcome.note { Output.note(TerminalText(note)) }
        let count = Phrase.keys(plan.accepted.count)
        guard !json.isOn else {
            let fields: [(String, JSON)] = [
                ("imported", .integer(plan.accepted.count)),
                ("skipped", .array(plan.rejected.map(\.json))),
            ]
            return Output.print(.object(fields + outcome.fields + dryRunFields(changes)))
        }
        guard dryRun else { return Output.print("Imported \(count).") }
        guard !changes.isEmpty else {
            return Output.print("Would import \(count); all have their value already.")
        }
        Output.print(ValueChange.lines(changes))
        Output.print("Would import \(count): \(ValueChange.summary(changes)).")
    }

    func dryRunFields(_ changes: [ValueChange]) -> [(String, JSON)] {
        dryRun ? [("changes", .array(changes.map(\.json)))] : []
    }
}
