// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityArchive
import UbiquityCore

extension ImportCommand {
    func importArchive(_ archive: ArchiveFile) async throws {
        let name = InputFile.name(file)
        let archive = try ArchiveImport(archive, name: name, only: store.store)
        if !archive.hasDigests {
            Output.note(
                TerminalText(
                    "\(name) has no digests, like all archives of version 0.1: missing parts of a "
                        + "store cannot be detected."))
        }
        // All stores are checked first, so problems are reported before anything is written.
        let imported = try await Progress.showing { note in
            var (imported, done) = ([ImportedStore](), 0)
            for store in archive.stores {
                note(ProgressStep("Checking", done, of: archive.keys, .keys))
                try await with(store, of: archive, ifMissing: .imagine) { try check($1) }
                done += store.keys
            }
            done = 0
            for store in archive.stores {
                note(ProgressStep("Importing", done, of: archive.keys, .keys))
                imported.append(
                    try await with(
                        store, of: archive, ifMissing: dryRun ? .imagine : .make
                    ) { open, plan in
                        try await take(plan, into: open)
                    })
                done += store.keys
            }
            return imported
        }
        try report(imported, of: archive)
    }

    private func with<Result>(
        _ part: ArchiveManifest.Store, of archive: ArchiveImport,
        ifMissing missing: OpenStore.Missing, _ body: (OpenStore, ImportPlan) async throws -> Result
    ) async throws -> Result {
        var options = store
        options.store = part.identifier.string
        let entries = try archive.entries(of: part)
        return try await OpenStore.with(options, sync.policy, ifMissing: missing) { open in
            // Otherwise the values of a device that has never synced would yield to the account's.
            await open.catchUp()
            return try await body(
                open, ImportPlan(entries, limits: open.store.engineStatus.limits))
        }
    }

    private func report(_ stores: [ImportedStore], of archive: ArchiveImport) throws {
        let notes = Set(stores.compactMap(\.outcome.note))
        for note in notes.sorted() { Output.note(TerminalText(note)) }
        if json.isOn { Output.print(.array(stores.map(json))) }
        for store in stores { try store.outcome.check() }
        if json.isOn { return }
        let count = stores.reduce(0) { $0 + $1.imported }
        let verb = dryRun ? "Would import" : "Imported"
        let heading: TerminalText =
            "\(verb) \(Phrase.keys(count)) of the account \(JSON.escaped(archive.accountName)) "
            + "into \(Phrase.counted(stores.count, "store"))"
        var lines: [TerminalText] = []
        for store in stores {
            lines.append(TerminalText("  \(store.identifier): \(store.counts)"))
            guard dryRun, !store.changes.isEmpty else { continue }
            lines.append(ValueChange.lines(store.changes, indent: "      "))
        }
        Output.print(lines.isEmpty ? heading + "." : TerminalText(lines: [heading + ":"] + lines))
    }
}
