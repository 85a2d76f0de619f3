// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Print the value of a key.",
        discussion: """
            What is new on the server is fetched first; where that is not possible, the value that \
            this device has is printed, and a note says so. A missing key is status 1.

            A string is printed as it is, data in base64, a date in ISO 8601. JSON: the value in the \
            protocol's form, which keeps the types apart: {"integer":"1"}, {"real":1}, \
            {"boolean":true}.
            """)

    @Argument(help: "The key.")
    var key: String

    @Flag(help: "Print the bytes of data or a string, and nothing else: no line end.")
    var raw = false

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup(title: "Server") var sync: SyncOptions
    @OptionGroup var json: JSONOption

    func validate() throws {
        if raw, json.isOn { throw ValidationError("--raw and --json exclude each other.") }
    }

    func run() async throws {
        let key = try Key(key)
        let value = try await OpenStore.with(store, sync.policy) { open in
            await open.refresh()
            return open.store.value(key.string)
        }
        guard let value else { throw Failure(.no, "there is no key \"\(key)\" in the store") }
        try print(value)
    }

    private func print(_ value: PropertyListValue) throws {
        if json.isOn { return Output.print(.value(value)) }
        if !raw { return Output.write(Array((value.text + "\n").utf8)) }
        switch value {
        case .data(let bytes): Output.write(bytes)
        case .string(let string): Output.write(Array(string.string.utf8))
        default:
            throw Failure(
                .badInput, "--raw is for data and strings; \"\(key)\" is \(value.article)")
        }
    }
}

extension PropertyListValue {
    /// The type with its article, for a sentence.
    fileprivate var article: String {
        switch self {
        case .integer, .unsigned, .array: "an \(typeName)"
        case .data: typeName
        default: "a \(typeName)"
        }
    }
}
