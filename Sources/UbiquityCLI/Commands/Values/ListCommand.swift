// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the keys, their types and values.",
        discussion: """
            Changes on the server are fetched first if possible. On a terminal, long values are \
            shortened; in a pipe or file they are whole. `ubiquity keys` lists the keys alone.

            JSON: one object with all keys in order.
            """)

    @Option("Only keys that begin with this.", "text", completion: Completions.keys)
    var prefix: String?

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup(title: "Server") var sync: SyncOptions
    @OptionGroup var json: ValueJSONOption

    func run() async throws {
        let values = try await OpenStore.values(store, sync.policy, prefix: prefix)
        if json.isOn { return json.print(.values(values)) }
        if values.isEmpty { return Output.note(Self.nothing(prefix)) }
        Self.table(of: values).print()
    }

    static func nothing(_ prefix: String?) -> TerminalText {
        prefix.map { "No key begins with \"\($0)\"." } ?? "The store is empty."
    }

    static func table(of values: [Key: PropertyListValue]) -> Table {
        let (sorted, names) = (values.sorted { $0.key < $1.key }, KeyNames(values.keys))
        return Table(
            header: ["KEY", "TYPE", "VALUE"],
            rows: sorted.map { [names.shown($0.key), $0.value.typeName] },
            values: sorted.map { [$0.value.line] })
    }
}
