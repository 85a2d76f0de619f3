// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Print the values of keys.",
        discussion: """
            Changes on the server are fetched first; if that is not possible, the device's own \
            value is printed, with a note. Several values are printed one after the other. If a \
            key is missing, nothing is printed, and the status is 1.

            A string is printed as it is, data in base64, a date in ISO 8601. On a terminal, \
            control characters are escaped.

            JSON: the value: a number, a string, true, an array, an object; dates in ISO 8601 and \
            data in base64, as strings. Of several keys, an object with the values. --exact keeps the types apart: {"integer":"1"}, \
            {"real":1.0}, {"date":816948000.0}.
            """)

    @Argument(help: "The keys.", completion: Completions.keys)
    var keys: [String]

    @Flag(help: "Print only the bytes of data or a string, without a line end.")
    var raw = false

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup(title: "Server") var sync: SyncOptions
    @OptionGroup var json: ValueJSONOption

    func validate() throws {
        if raw, json.isOn {
            throw ValidationError("--raw cannot be used with --json or --exact.")
        }
        if raw, keys.count > 1 { throw ValidationError("--raw is for one key.") }
    }

    func run() async throws {
        let keys = try keys.map(Key.init)
        let (values, isSignedIn) = try await OpenStore.with(
            store, sync.policy, ifMissing: .refuse
        ) { open in
            await open.refresh()
            return (open.store.values, open.account != nil)
        }
        let missing = keys.filter { values[$0] == nil }
        guard missing.isEmpty else {
            let place = isSignedIn || sync.local ? "" : " on this device, which is not signed in"
            let names = missing.map(KeyNames(values.keys).absent).joined(separator: ", ")
            throw Failure(.no, "the store has no key \(names)" + place)
        }
        if json.isOn, keys.count > 1 {
            return json.print(.values(values.filter { keys.contains($0.key) }))
        }
        for key in keys { if let value = values[key] { try print(value, of: key) } }
    }

    private func print(_ value: PropertyListValue, of key: Key) throws {
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
