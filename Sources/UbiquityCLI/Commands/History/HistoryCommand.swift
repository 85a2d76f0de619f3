// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct HistoryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: "Show earlier values of a key, or of the whole store.",
        discussion: """
            The newest version comes first: when it was written, on which device, and what became \
            of it. "lost" means that a write made later was there already when it came. "not kept" \
            means that the history does not have all values from then until the next line: of a key \
            that changes often, it keeps those that stayed longest. Under a conflict policy, each \
            version is the value that all devices made together. Times are in your time zone.

            The server keeps the history, as long as its operator has set. Without the server, what \
            this device knows of the key itself is shown. Status 1: nothing is known of the key.

            JSON: a list of {"key", "version", "value", "made", "received", "device", "deviceName", \
            "status", "ended", "endedBy", "reason"}; "value" is null for a removal; "status" is one \
            of waiting, current, replaced, lost, refused and gap, which has no version and no value; \
            what is not known is null.
            """)

    @Argument(help: "The key. Default: all keys.", completion: Completions.keys)
    var key: String?

    @Option(help: ArgumentHelp("The number of versions.", valueName: "number"))
    var limit = 50

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup(title: "Server") var sync: SyncOptions
    @OptionGroup var json: ValueJSONOption

    func validate() throws {
        guard (1...100_000).contains(limit) else {
            throw ValidationError("--limit must be a number from 1 to 100000.")
        }
        if sync.local, key == nil {
            throw ValidationError("--local needs a KEY: the history of the store is on the server.")
        }
    }

    func run() async throws {
        let key = try key.map { try Key($0) }
        let list = try await OpenStore.with(store, sync.policy, ifMissing: .refuse) { open in
            if let key {
                let list = try await versions(of: key, open)
                guard list.versions.isEmpty else { return list }
                let name = KeyNames(open.store.values.keys).absent(key)
                throw Failure(.no, "nothing is known of the key \(name)")
            }
            await open.catchUp()
            return VersionList(
                versions: try await open.versions(newest: limit),
                devices: try await open.devices(), hasKeys: true)
        }
        if json.isOn { return json.print(list.json) }
        if list.versions.isEmpty { return Output.note("The history is empty.") }
        list.table.print()
    }

    private func versions(of key: Key, _ open: OpenStore) async throws -> VersionList {
        if !sync.local {
            await open.catchUp()
            do {
                return VersionList(
                    versions: try await open.versions(of: key, newest: limit),
                    devices: try await open.devices())
            } catch {
                Output.note("Showing only what this device knows: \(Failure.sentence(of: error))")
            }
        }
        return VersionList(
            versions: Array(try open.store.localVersions(of: key).prefix(limit)),
            devices: open.store.localDevices)
    }
}
