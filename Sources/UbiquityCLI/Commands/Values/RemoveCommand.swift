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
            let missing = keys.subtracting(present).sorted()
            for key in missing { Output.note("There is no key \"\(key)\".") }
            try outcome.report(
                json,
                [
                    "removed": .array(present.map { .string($0.string) }),
                    "missing": .array(missing.map { .string($0.string) }),
                ])
        }
    }
}
