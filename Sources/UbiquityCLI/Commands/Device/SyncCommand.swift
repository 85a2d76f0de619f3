// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct SyncCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync",
        abstract: "Sync now.",
        discussion: """
            When it succeeds, the server has everything that this device had written, and this \
            device has everything that the server had. "pending" counts what was written \
            meanwhile; "setAside" has the keys of which the server has something that this device does \
            not take, such as a value that the account's key does not open. With --until, it then waits until another device has it all on its disk, too.
            Status 69: the server cannot be reached, or the other device does not have it in time; \
            77: not signed in, or not allowed.

            JSON: {"keys", "pending", "setAside", "bytes"}.
            """)

    @OptionGroup(title: "Store") var store: StoreOptions

    @Option(
        "Wait until this device has everything, too: its name or ID.", "device",
        completion: Completions.devices)
    var until: String?

    @OptionGroup var time: TimeoutOption
    @OptionGroup var json: JSONOption

    func run() async throws {
        let status = try await OpenStore.with(
            store, SyncPolicy(timeout: time.seconds(until == nil ? 30 : 90))
        ) {
            open in
            let start = ContinuousClock.now
            try await open.awaitConfirmation()
            await open.sendReceipt(since: start)
            if let until { try await open.awaitDelivery(to: until, since: start) }
            return open.store.engineStatus
        }
        report(status)
    }

    private func report(_ status: EngineStatus) {
        if let note = Phrase.setAside(status.setAside) { Output.note(TerminalText(note)) }
        json.print(
            [
                "keys": .integer(status.usage.keys), "pending": .integer(status.pendingKeys.count),
                "setAside": .strings(status.setAside), "bytes": .integer(status.usage.bytes),
            ],
            or: "\(Phrase.keys(status.usage.keys)) synced, \(status.pendingKeys.count) pending"
                + (until.map { "; \($0) has everything" } ?? ""))
    }
}

extension Failure {
    static let notSignedIn = Failure(
        .noPermission,
        "this device is not signed in; run `ubiquity sign-in --server URL --code CODE`")
}
