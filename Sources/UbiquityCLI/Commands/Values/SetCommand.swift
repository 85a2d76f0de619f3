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
            ubiquity set KEY --array red green --integer 5
            ubiquity set KEY --dict name Ann age --integer 5
            ubiquity set KEY --json-value '{"name":"Ann","age":5}'
            ubiquity set KEY - < FILE
            """,
        discussion: """
            The value is saved on this device first. If it cannot be sent to the server yet, a \
            note says so and the status is 0: it is sent as soon as possible, by any program that \
            uses the store. If the server refuses it, it is rolled back here, and the status is 77.

            A string that is read from a file loses its last line end, which `get` prints again. \
            A file has at most \(InputFile.bytesMax >> 20) MB.

            In --json-value, 1 is an integer and 1.0 a real number; null is no value, and nothing \
            becomes a date or data.

            JSON: {"key", "value", "sent", "notSentBecause"}.
            """)

    @Argument(
        help: "The key: at most 64 bytes of UTF-8, unless the server says otherwise.",
        completion: Completions.keys)
    var key: String

    @OptionGroup(title: "Value") var value: ValueOptions
    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup(title: "Server") var sync: SyncOptions
    @OptionGroup var json: ValueJSONOption

    func run() async throws {
        let (key, value) = (try Key(key), try value.parsed())
        let outcome = try await OpenStore.with(store, sync.policy) { open in
            try await open.write([key: .value(value)])
        }
        try outcome.report(json, ["key": .string(key.string), "value": .value(value)])
    }
}
