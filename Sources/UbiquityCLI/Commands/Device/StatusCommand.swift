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
            is given. Without a store identifier, or if there is no such store yet, only the \
            account is shown.

            JSON: {"home", "account", "isAccepted", "isSealed", "isLocked", "clockAhead", "store"}; \
            "isAccepted" says whether the server accepts this device's sign-in, "isSealed" whether \
            the account is sealed, and "isLocked" whether this device lacks its key; each is null \
            if the server did not answer; \
            "clockAhead" is how far this device's clock is ahead of the server's, in seconds, as \
            the server measured it with the last push, or null; "account" is null or {"name", \
            "id", "server", "device", "deviceName"}; "store" is null or {"identifier", \
            "connection", "heldUpBy", "pendingKeys", "neverSent", "setAside", "keys", "keysMax", \
            "bytes", "bytesMax", "firstSyncCompleted", "lastSync", "lastError", "nextRetry", "diskError"}. "connection" is one of signedOut, \
            connecting, connected, polling, waiting, locked and unauthorized, or null with --local if no \
            program is connected; "neverSent" is null or says which of the pending keys wait for \
            ever, because they are too large to be sent; "setAside" has the keys of which the server \
            has something that this device does not take; "heldUpBy" is null or a process, such as \
            "notes (4711)", that \
            holds the connection and does not respond because it was stopped; "nextRetry" is null \
            unless another program will try again; times are ISO 8601 or null.
            """)

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup(title: "Server") var sync: SyncOptions
    @OptionGroup var json: JSONOption

    func run() async throws {
        let home = try store.home.open()
        var report = StatusReport(
            home: URL(fileURLWithPath: home.path).path, account: try home.load().signedIn)
        if try store.configuration.resolvedIdentifier() == nil {
            // Only the account is shown.
        } else if let absence = try await OpenStore.absence(store, sync.policy) {
            report.isStoreMissing = true
            Output.note(TerminalText("No store yet: \(absence.sentence)"))
        } else {
            try await OpenStore.with(store, sync.policy) { open in
                let refusal = await ask(open)
                report.heldUpBy = open.heldUpBy
                report.leader = open.leader
                report.knowsConnection = !open.isHeldOffline
                report.store = (open.identifier, open.store.engineStatus)
                // A server that refuses one write accepts others.
                report.isRefused = refusal && open.store.engineStatus.link.state == .waiting
            }
        }
        report.ownDevice = await ownDevice(report.account)
        if case .success = report.ownDevice {
            report.sealing = try? await withTimeout(seconds: sync.policy.timeout) {
                try await home.sealing()
            }
        }
        if json.isOn { return Output.print(report.json) }
        report.appName = await appName(report)
        Output.print(report.text)
    }

    /// Asks a server that has just answered.
    private func appName(_ report: StatusReport) async -> String? {
        guard case .success = report.ownDevice, let account = report.account else { return nil }
        let stores = try? await withTimeout(seconds: sync.policy.timeout) {
            try await AccountClient.stores(account)
        }
        return stores?.first { $0.identifier == report.store?.identifier }?.appName
    }

    /// Nil if the server is not to be asked.
    private func ownDevice(
        _ account: SignedInAccount?
    ) async -> Result<ServerDevice, UbiquityError>? {
        guard !sync.local, let account else { return nil }
        do {
            let device = try await withTimeout(seconds: sync.policy.timeout) {
                try await AccountClient.ownDevice(account)
            }
            return .success(device)
        } catch let failure as LinkFailure {
            return .failure(UbiquityError(failure))
        } catch {
            return .failure(
                error as? UbiquityError ?? UbiquityError(.unreachable, Failure.sentence(of: error)))
        }
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
