// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct KeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys",
        abstract: "List the keys alone, one on each line.",
        discussion: """
            Changes on the server are fetched first if possible. In a pipe, keys have their own \
            bytes; of keys that may contain line ends, only --json says where each ends.

            JSON: a list of the keys, in order.
            """)

    @Option("Only keys that begin with this.", "text", completion: Completions.keys)
    var prefix: String?

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup(title: "Server") var sync: SyncOptions
    @OptionGroup var json: JSONOption

    func run() async throws {
        let keys = try await OpenStore.values(store, sync.policy, prefix: prefix).keys.sorted()
        if json.isOn { return json.print(.array(keys.map { .string($0.string) })) }
        if keys.isEmpty { return Output.note(ListCommand.nothing(prefix)) }
        let names = KeyNames(keys)
        for key in keys {
            if Output.isTerminal {
                Output.print(TerminalText(names.shown(key)))
            } else {
                Output.write(Array((key.string + "\n").utf8))
            }
        }
    }
}
