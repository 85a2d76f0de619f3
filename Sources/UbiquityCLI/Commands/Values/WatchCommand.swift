// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Synchronization
import Ubiquity
import UbiquityCore
import UnixSignals

struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Print changes as they arrive.",
        discussion: """
            Prints the number of keys once the server was asked, then each change by another \
            device, or by another program on this one. Says when the connection comes and goes; \
            while a server is away, asks every second whether it is back. Ends with status 0 on \
            Ctrl-C and SIGTERM.

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
            let connection = ConnectionNotes(isLocal: sync.local)
            if let failure { connection.isAway(failure) } else { connection.isThere() }
            let count = keys.isEmpty ? watch.known.count : keys.count
            Output.note("Watching \(Phrase.keys(count)). Press Ctrl-C to stop.")
            if initial { for change in watch.initial { print(change) } }
            let following = Task {
                for await status in open.store.statuses { connection.report(status) }
            }
            defer { following.cancel() }
            let asking = Task { await askForServer(open) }
            defer { asking.cancel() }
            let printing = Task { await print(changes, of: open.store, watch, connection) }
            let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
            let interruption = Task { for await _ in signals { printing.cancel() } }
            defer { interruption.cancel() }
            await printing.value
        }
    }

    private func print(
        _ changes: UbiquityChanges, of store: UbiquitousKeyValueStore, _ watch: Watch,
        _ connection: ConnectionNotes
    ) async {
        var watch = watch
        for await news in changes where news.origin != .own {
            connection.report(store.status)
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

    private func print(_ change: Watch.Change) {
        json.print(
            [
                "key": .string(change.key.string), "value": change.value.map(JSON.value) ?? .null,
                "reason": .string(change.origin?.word ?? "initial"),
            ], or: change.text)
    }

    /// The store itself waits up to a minute before it tries again.
    private func askForServer(_ open: OpenStore) async {
        guard let account = open.account, !sync.local else { return }
        var (isAway, pause) = (false, Self.pause)
        while (try? await Task.sleep(for: pause)) != nil {
            pause = Self.pause
            guard open.store.status.connection == .waiting else { continue }
            do {
                _ = try await withTimeout(seconds: 1) {
                    try await AccountClient.config(of: account)
                }
                // If it answers all the time, it has another reason than to be away.
                if isAway { open.store.synchronize() } else { pause = Self.longPause }
                isAway = false
            } catch { isAway = true }
        }
    }

    private static let pause = Duration.milliseconds(500)
    private static let longPause = Duration.seconds(10)
}

/// Says once when the connection comes, and once when it goes.
///
/// State: whether it is there, guarded by the lock; nil before anything was said.
private final class ConnectionNotes: Sendable {
    private let isConnected = Mutex<Bool?>(nil)
    private let isLocal: Bool

    /// - Parameter isLocal: Whether no connection is wanted, and nothing is said of it.
    init(isLocal: Bool) { self.isLocal = isLocal }

    func isThere() { change(to: true, "Connected.") }

    func isAway(_ reason: String) { change(to: false, "Not connected: \(reason)") }

    func report(_ status: UbiquityStatus) {
        switch status.connection {
        case .connected, .polling: isThere()
        case .waiting, .unauthorized, .locked, .signedOut: isAway(status.lastError ?? "signed out")
        case .connecting, .notConfigured: break
        }
    }

    private func change(to new: Bool, _ note: TerminalText) {
        isConnected.withLock { old in
            guard old != new, !isLocal else { return }
            old = new
            Output.note(note)
        }
    }
}
