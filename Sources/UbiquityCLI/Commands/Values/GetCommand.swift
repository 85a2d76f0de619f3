// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Print the value of a key.",
        discussion: """
            Changes on the server are fetched first; if that is not possible, the device's own \
            value is printed, with a note. A missing key is status 1.

            A string is printed as it is, data in base64, a date in ISO 8601. On a terminal, \
            control characters are escaped.

            JSON: the value: a number, a string, true, an array, an object; dates in ISO 8601 and \
            data in base64, as strings. --exact keeps the types apart: {"integer":"1"}, \
            {"real":1.0}, {"date":816948000.0}.
            """)

    @Argument(help: "The key.", completion: Completions.keys)
    var key: String

    @Flag(help: "Print only the bytes of data or a string, without a line end.")
    var raw = false

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup(title: "Server") var sync: SyncOptions
    @OptionGroup var json: ValueJSONOption

    func validate() throws {
        if raw, json.isOn {
            throw ValidationError("--raw cannot be used with --json or --exact.")
        }
    }

    func run() async throws {
        let key = try Key(key)
        let (value, isSignedIn) = try await OpenStore.with(
            store, sync.policy, ifMissing: .refuse
        ) { open in
            await open.refresh()
            return (open.store.value(key.string), open.account != nil)
        }
        guard let value else {
            let place = isSignedIn || sync.local ? "" : " on this device, which is not signed in"
            throw Failure(.no, "the store has no key \"\(key)\"" + place)
        }
        try print(value)
    }

    private func print(_ value: PropertyListValue) throws {
        if json.isOn { return json.print(.value(value)) }
        if !raw { return Output.write(Array((value.text + "\n").utf8)) }
        switch value {
        case .data(let bytes): Output.write(bytes)
        case .string(let string): Output.write(Array(string.string.utf8))
        default:
            throw Failure(
                .badInput, "--raw is for data and strings; \"\(key)\" is \(value.kind)")
        }
    }
}
