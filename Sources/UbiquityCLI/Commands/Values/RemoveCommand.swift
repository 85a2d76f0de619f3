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
            that do not exist are listed; that is not an error. With --prefix, the command says how \
            many keys begin with it, and asks.

            JSON: {"removed", "missing", "sent", "notSentBecause"}.
            """)

    @Argument(help: "The keys.", completion: Completions.keys)
    var keys: [String] = []

    @Option("All keys that begin with this.", "text", completion: Completions.keys)
    var prefix: String?

    @Flag(help: "Do not ask.")
    var yes = false

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup(title: "Server") var sync: SyncOptions
    @OptionGroup var json: JSONOption

    func validate() throws {
        guard keys.isEmpty == (prefix != nil) else {
            throw ValidationError("Give either keys or --prefix.")
        }
        if prefix == nil { try refuse(given(("--yes", yes)), "without --prefix.") }
    }

    func run() async throws {
        let named = Set(try keys.map(Key.init))
        try await OpenStore.with(store, sync.policy, ifMissing: .refuse) { open in
            await open.catchUp()
            let known = open.store.values.keys
            let present = known.filter {
                prefix.map($0.string.hasPrefix) ?? named.contains($0)
            }.sorted()
            if let prefix { try confirm(present, prefix) }
            let changes = Dictionary(present.map { ($0, Content.deleted) }) { first, _ in first }
            let outcome = present.isEmpty ? WriteOutcome() : try await open.write(changes)
            let (missing, names) = (named.subtracting(present).sorted(), KeyNames(known))
            for key in missing { Output.note("There is no key \(names.absent(key)).") }
            try outcome.report(
                json,
                [
                    "removed": .array(present.map { .string($0.string) }),
                    "missing": .array(missing.map { .string($0.string) }),
                ])
        }
    }

    private func confirm(_ keys: [Key], _ prefix: String) throws(Failure) {
        guard !keys.isEmpty else { return Output.note(ListCommand.nothing(prefix)) }
        try Question.confirm(
            "Remove \(Phrase.keys(keys.count)): \(Phrase.names(keys))?", isGiven: yes,
            otherwise: "nothing was removed")
    }
}
