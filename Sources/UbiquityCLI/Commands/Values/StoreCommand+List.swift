// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

extension StoreCommand {
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the stores of your account.",
            discussion: """
                Lists the stores on the server that this device may use, and those that are only \
                on this device.

                JSON: a list of {"identifier", "app", "keys", "bytes", "isHere"}; "app" is the name \
                that the app was registered with, or null; "isHere" says whether this device has a \
                copy; "keys" and "bytes" are null where they cannot be read.
                """)

        @OptionGroup var home: HomeOptions
        @OptionGroup(title: "Server") var sync: SyncOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let list = try await StoreListing(home.open(), sync.policy)
            json.print(list.json, or: list.table, ifEmpty: "There are no stores yet.")
        }
    }
}

/// The stores of the account, with those that are only here.
struct StoreListing {
    struct Store {
        var identifier: String
        var appName: String?
        var usage: Usage?
        var isHere: Bool
    }

    /// Sorted by identifier.
    private(set) var stores: [Store]

    /// Asks the server if it can be reached, and otherwise prints a line with the reason.
    init(_ home: DeviceHome, _ sync: SyncPolicy) async throws {
        let state = try home.load()
        let local = try Self.local(home, state)
        stores = local.values.sorted { $0.identifier < $1.identifier }
        guard let account = state.signedIn, !sync.isLocal else { return }
        do {
            let remote = try await withTimeout(seconds: sync.timeout) {
                try await AccountClient.stores(account)
            }
            let all = remote.map { store in
                Store(
                    identifier: store.identifier, appName: store.appName, usage: store.usage,
                    isHere: local[store.identifier] != nil)
            }
            let known = Set(all.map(\.identifier))
            stores = (all + stores.filter { !known.contains($0.identifier) })
                .sorted { $0.identifier < $1.identifier }
        } catch {
            Output.note(
                "Showing the stores on this device; the server's could not be fetched: "
                    + "\(Failure.sentence(of: error))")
        }
    }

    private static func local(
        _ home: DeviceHome, _ state: DeviceState
    ) throws -> [String: Store] {
        let stores = try home.storeFiles(in: state.folder).map { identifier, path in
            Store(
                identifier: identifier, usage: try? StoreInspection(path: path).usage, isHere: true)
        }
        return Dictionary(stores.map { ($0.identifier, $0) }) { first, _ in first }
    }

    /// With a column of apps if one has a name.
    var table: Table {
        let hasNames = stores.contains { $0.appName != nil }
        return Table(
            header: ["STORE"] + (hasNames ? ["APP"] : []) + ["KEYS", "BYTES", "ON THIS DEVICE"],
            rows: stores.map { store in
                [store.identifier] + (hasNames ? [store.appName ?? "-"] : []) + [
                    store.usage.map { Phrase.grouped($0.keys) } ?? "-",
                    store.usage.map { Phrase.grouped($0.bytes) } ?? "-",
                    store.isHere ? "yes" : "no",
                ]
            })
    }

    var json: [JSON] {
        stores.map { store in
            [
                "identifier": .string(store.identifier),
                "app": store.appName.map(JSON.string) ?? .null,
                "keys": store.usage.map { .integer($0.keys) } ?? .null,
                "bytes": store.usage.map { .integer($0.bytes) } ?? .null,
                "isHere": .boolean(store.isHere),
            ]
        }
    }
}
