// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the keys, their types and values.",
        discussion: """
            Changes on the server are fetched first if possible. Long values are shortened; `get` \
            and --json show them in full.

            JSON: one object with all keys in order.
            """)

    @Option("Only keys that begin with this.", "text", completion: Completions.keys)
    var prefix: String?

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup(title: "Server") var sync: SyncOptions
    @OptionGroup var json: ValueJSONOption

    /// The width of values if the terminal's width is unknown.
    private static let valueColumnsDefault = 60
    private static let valueColumnsMin = 20

    func run() async throws {
        let values = try await OpenStore.with(store, sync.policy, ifMissing: .refuse) { open in
            await open.refresh()
            return open.store.values.filter { $0.key.string.hasPrefix(prefix ?? "") }
        }
        if json.isOn { return json.print(.values(values)) }
        if values.isEmpty {
            return Output.note(
                prefix.map { "No key begins with \"\($0)\"." } ?? "The store is empty.")
        }
        Output.print(TerminalText(lines: Self.table(of: values, columns: Output.columns)))
    }

    static func table(of values: [Key: PropertyListValue], columns: Int?) -> [TerminalText] {
        let sorted = values.sorted { $0.key < $1.key }
        let keys = sorted.map { JSON.escaped($0.key.string) }
        let others = (keys.map(Table.width).max() ?? 0) + "dictionary".count + 4
        let room = columns.map { max($0 - others, valueColumnsMin) } ?? valueColumnsDefault
        let rows = zip(keys, sorted).map { key, entry in
            [key, entry.value.typeName, entry.value.line(room)]
        }
        return Table(header: ["KEY", "TYPE", "VALUE"], rows: rows).lines
    }
}
