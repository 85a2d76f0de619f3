// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore
import UnixSignals

struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Print changes as they arrive.",
        discussion: """
            Prints the number of keys once the server was asked, then each change by another \
            device, or by another program on this one. Ends with status 0 on Ctrl-C and SIGTERM.

            JSON: one line for each change, {"key", "value", "reason"}; "value" is null for a \
            deletion; "reason" is one of server, initial-sync, quota, account, and initial for \
            the values of --initial.
            """)

    @Argument(help: "The keys. Default: all.", completion: Completions.keys, transform: notEmpty)
    var keys: [String] = []

    @Flag(help: "Print the values at the beginning too, which --count does not count.")
    var initial = false

    @Option(help: ArgumentHelp("End after this many changes.", valueName: "number"))
    var count: Int?

    @Option("End after a change of this key.", "key", completion: Completions.keys)
    var until: String?

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup(title: "Server") var sync: SyncOptions
    @OptionGroup var json: ValueJSONOption

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count must be at least 1.") }
        if let until, !keys.isEmpty, !keys.contains(until) {
            throw ValidationError("--until needs one of the keys that are watched.")
        }
    }

    func run() async throws {
        let keys = Set(try keys.map(Key.init))
        try await OpenStore.with(store, sync.policy) { open in
            let changes = open.store.changes
            let failure = await connect(open)
            // The result of the first sync is the starting point of the watch, not a change.
            let watch = Watch(known: open.store.values, keys: keys, count: count, until: until)
            begin(keys.isEmpty ? watch.known.count : keys.count, failure)
            if initial { for change in watch.initial { print(change) } }
            let connection = Task { await reportConnection(of: open.store, failure == nil) }
            defer { connection.cancel() }
            let printing = Task { await print(changes, of: open.store, watch) }
            let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
            let interruption = Task { for await _ in signals { printing.cancel() } }
            defer { interruption.cancel() }
            await printing.value
        }
    }

    private func print(
        _ changes: UbiquityChanges, of store: UbiquitousKeyValueStore, _ watch: Watch
    ) async {
        var watch = watch
        for await news in changes where news.origin != .own {
            for change in watch.changes(news, in: store.values) { print(change) }
            if watch.isOver { break }
        }
    }

    /// - Returns: The reason there is no connection; nil if there is one, or none was wanted.
    private func connect(_ open: OpenStore) async -> String? {
        if open.account == nil { return "this device is not signed in" }
        if sync.local { return nil }
        do { try await open.exchange() } catch { return Failure.sentence(of: error) }
        return nil
    }

    private func begin(_ keys: Int, _ failure: String?) {
        if let failure { Output.note("Not connected: \(failure)") }
        Output.note("Watching \(Phrase.keys(keys)). Press Ctrl-C to stop.")
    }

    private func print(_ change: Watch.Change) {
        json.print(
            [
                "key": .string(change.key.string), "value": change.value.map(JSON.value) ?? .null,
                "reason": .string(change.origin?.word ?? "initial"),
            ], or: change.text)
    }

    private func reportConnection(
        of store: UbiquitousKeyValueStore, _ wasConnected: Bool
    ) async {
        var wasConnected = wasConnected
        for await status in store.statuses {
            switch (wasConnected, status.connection) {
            case (true, .waiting), (true, .unauthorized), (true, .signedOut):
                wasConnected = false
                Output.note("Not connected: \(status.lastError ?? "signed out")")
            case (false, .connected), (false, .polling):
                wasConnected = true
                Output.note("Connected.")
            default: break
            }
        }
    }
}
