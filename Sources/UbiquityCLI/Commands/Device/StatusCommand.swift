// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the account, the connection, and what waits to be sent.",
        discussion: """
            Prints one sentence, and the details below it. Asks the server first, unless --local \
            is given. Without a store identifier, only the account is shown.

            JSON: {"home", "account", "clockAhead", "store"}; "clockAhead" is how far this \
            device's clock is ahead of the server's, in seconds, as the server measured it with \
            the last push, or null; "account" is null or {"name", "id", "server", "device", \
            "deviceName"}; "store" is null or {"identifier", "connection", "heldUpBy", \
            "pendingKeys", "keys", "keysMax", "bytes", "bytesMax", "firstSyncCompleted", \
            "lastSync", "lastError", "nextRetry", "diskError"}. "connection" is one of signedOut, \
            connecting, connected, polling, waiting and unauthorized, or null with --local if no \
            program is connected; "heldUpBy" is null or a process, such as "notes (4711)", that \
            holds the connection and does not respond because it was stopped; times are ISO 8601 \
            or null.
            """)

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup(title: "Server") var sync: SyncOptions
    @OptionGroup var json: JSONOption

    func run() async throws {
        let home = try store.home.open()
        var report = StatusReport(
            home: URL(fileURLWithPath: home.path).path, account: try home.load().signedIn)
        if try store.configuration.resolvedIdentifier() == nil {
            try refuse(
                sync.given,
                "without a store: the server is not asked. Give --store IDENTIFIER.")
        } else {
            try await OpenStore.with(store, sync.policy) { open in
                let refusal = await ask(open)
                report.clockAhead = await clockAhead(open)
                report.heldUpBy = open.heldUpBy
                report.leader = open.leader
                report.knowsConnection = !open.isHeldOffline
                report.store = (open.identifier, open.store.engineStatus)
                // A server that refuses one write accepts others.
                report.isRefused = refusal && open.store.engineStatus.link.state == .waiting
            }
        }
        if json.isOn {
            Output.print(report.json)
        } else {
            Output.print(report.text)
        }
    }

    private func clockAhead(_ open: OpenStore) async -> Int64? {
        guard !sync.local, let account = open.account else { return nil }
        return try? await AccountClient.ownDevice(account).clockAheadMilliseconds
    }

    /// - Returns: Whether the server permanently refuses the request.
    private func ask(_ open: OpenStore) async -> Bool {
        guard !sync.local, open.account != nil else { return false }
        do { try await open.awaitConfirmation() } catch let error as UbiquityError {
            return error.code == .refused
        } catch {}
        return false
    }
}
