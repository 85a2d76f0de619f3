// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct RemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove keys, as one change.",
        discussion: """
            Changes on the server are fetched first, so that a key set elsewhere is found. Keys \
            that do not exist are listed; that is not an error.

            JSON: {"removed", "missing", "sent", "notSentBecause"}.
            """)

    @Argument(help: "The keys.", completion: Completions.keys)
    var keys: [String]

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup(title: "Server") var sync: SyncOptions
    @OptionGroup var json: JSONOption

    func run() async throws {
        let keys = Set(try keys.map(Key.init))
        try await OpenStore.with(store, sync.policy, ifMissing: .refuse) { open in
            await open.catchUp()
            let present = keys.filter { open.store.value($0.string) != nil }.sorted()
            let changes = Dictionary(present.map { ($0, Content.deleted) }) { first, _ in first }
            let outcome = present.isEmpty ? WriteOutcome() : try await open.write(changes)
            try report(removed: present, missing: keys.subtracting(present).sorted(), outcome)
        }
    }

    private func report(removed: [Key], missing: [Key], _ outcome: WriteOutcome) throws {
        for key in missing { Output.note("There is no key \"\(key)\".") }
        if let note = outcome.note { Output.note(TerminalText(note)) }
        guard json.isOn else { return try outcome.check() }
        let fields: [(String, JSON)] = [
            ("removed", .array(removed.map { .string($0.string) })),
            ("missing", .array(missing.map { .string($0.string) })),
        ]
        Output.print(.object(fields + outcome.fields))
        try outcome.check()
    }
}
