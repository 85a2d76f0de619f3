// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import UbiquityCore

struct SetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Set the value of a key.",
        usage: """
            ubiquity set KEY VALUE
            ubiquity set KEY --integer 5
            """,
        discussion: """
            The value is saved on this device first. If it cannot be sent to the server yet, a \
            note says so and the status is 0: it is sent as soon as possible, by any program that \
            uses the store.

            JSON: {"key", "value", "sent", "notSentBecause"}, with the value in the protocol's \
            form, such as {"integer":"5"}.
            """)

    @Argument(help: "The key: at most 64 bytes of UTF-8, unless the server says otherwise.")
    var key: String

    @OptionGroup(title: "Value") var value: ValueOptions
    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup(title: "Server") var sync: SyncOptions
    @OptionGroup var json: JSONOption

    func run() async throws {
        let (key, value) = (try Key(key), try value.parsed())
        let outcome = try await OpenStore.with(store, sync.policy) { open in
            try await open.write([key: .value(value)])
        }
        if let note = outcome.note { Output.note(TerminalText(note)) }
        guard json.isOn else { return }
        Output.print(
            .object([("key", .string(key.string)), ("value", .value(value))] + outcome.fields))
    }
}
