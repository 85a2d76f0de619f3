// SPDX-License-Identifier: Apache-2.0

import Ubiquity
import UbiquityCore

extension ImportCommand {
    func importAccount(_ file: AccountImport) async throws {
        // All stores are checked first, so problems are reported before anything is written.
        let (name, imported) = try await Progress.showing { note in
            note(ProgressStep("Checking", 0, of: file.bytes))
            _ = try await file.read(only: store.store) { identifier, entries, done in
                try await with(identifier, entries, ifMissing: .imagine) { try check($1) }
                note(ProgressStep("Checking", done, of: file.bytes))
            }
            var (imported, before) = ([ImportedStore](), 0)
            let name = try await file.read(only: store.store) { identifier, entries, done in
                note(ProgressStep("Importing", before, of: file.bytes))
                before = done
                imported.append(
                    try await with(identifier, entries, ifMissing: dryRun ? .imagine : .make) {
                        try await take($1, into: $0)
                    })
            }
            return (name, imported)
        }
        try report(imported, of: name)
    }

    private func with<Result>(
        _ identifier: StoreIdentifier, _ entries: [PropertyListFile.Entry],
        ifMissing missing: OpenStore.Missing, _ body: (OpenStore, ImportPlan) async throws -> Result
    ) async throws -> Result {
        var options = store
        options.store = identifier.string
        return try await OpenStore.with(options, sync.policy, ifMissing: missing) { open in
            // Otherwise the values of a device that has never synced would yield to the account's.
            await open.catchUp()
            return try await body(
                open, ImportPlan(entries, limits: open.store.engineStatus.limits))
        }
    }

    private func report(_ stores: [ImportedStore], of account: String) throws {
        let notes = Set(stores.compactMap(\.outcome.note))
        for note in notes.sorted() { Output.note(TerminalText(note)) }
        if json.isOn { Output.print(.array(stores.map(json))) }
        for store in stores { try store.outcome.check() }
        if json.isOn { return }
        let count = stores.reduce(0) { $0 + $1.imported }
        let verb = dryRun ? "Would import" : "Imported"
        let heading: TerminalText =
            "\(verb) \(Phrase.keys(count)) of the account \(JSON.escaped(account)) "
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
