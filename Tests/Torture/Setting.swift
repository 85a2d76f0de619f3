// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOPosix
import ProcessHarness
import TortureLanguage
import UbiquityCore
import UbiquitySimulation

/// Builds what a torture is performed on.
struct Setting {
    private let plan: TorturePlan
    private let stage: Stage

    init(_ plan: TorturePlan, _ stage: Stage) { (self.plan, self.stage) = (plan, stage) }

    /// Never ended: the program does.
    private let loop = MultiThreadedEventLoopGroup.singleton.next()

    func build() async throws -> TortureRun {
        Torture.say(
            "seed \(plan.seed): \(plan.accounts) accounts, \(plan.devices) devices with "
                + "\(plan.processes) processes each, \(Int(plan.seconds)) s of faults")
        let disks = try makeDisks()
        let chronicle = try chronicle()
        let clocks = WrongClocks(plan)
        let servers = try await TortureServers(plan, stage, clocks, on: loop, chronicle)
        let server = servers.nodes[0].server
        let homes = (0...plan.devices).map { stage.path("device-\($0)") }
        var (listeners, witnesses): ([ServerListener], [ServerListener]) = ([], [])
        for account in 0..<plan.accounts {
            let store = StoreReference(account: account, store: 0)
            let name = Self.name(account)
            listeners.append(
                try await ServerListener(
                    store, server: servers.front.url,
                    code: server.newCode(isFirst: true, account: name), chronicle, homes: homes))
            for node in servers.nodes where servers.nodes.count > 1 {
                witnesses.append(
                    try await ServerListener(
                        store, server: node.server.url, code: server.newCode(account: name),
                        chronicle, homes: homes, name: "witness-\(node.number)", isWitness: true))
            }
        }
        let probe = try await ServiceProbe(
            by: server.newCode(isFirst: true, account: "probe"),
            through: servers.way(on: loop, chronicle))
        var devices: [TortureDevice] = []
        for number in 0..<plan.devices {
            let proxy = try await servers.way(on: loop, chronicle)
            let account = number % plan.accounts
            let device = TortureDevice(
                number: number, account: account, home: stage.path("device-\(number)"),
                proxy: proxy, environment: clocks.environment(of: number))
            try await device.join(by: server.newCode(account: Self.name(account)))
            chronicle.note(
                .signedIn(device: number, folder: device.disk.folder, account: account))
            devices.append(device)
        }
        // Of the last one, whose account is not that of the device with the small disk, where there are two.
        if let original = devices.last, plan.devices > 1 {
            devices.append(
                TortureDevice(
                    number: plan.devices, home: stage.path("device-\(plan.devices)"),
                    cloneOf: original))
        }
        return TortureRun(
            plan, stage, chronicle, servers, probe, devices, listeners, witnesses, disks)
    }

    private static func name(_ account: Int) -> String { "person-\(account)" }

    private func chronicle() throws -> Chronicle {
        let groups = plan.groupedKeys
        return try Chronicle(path: stage.path("history.jsonl")) {
            [
                BatchChecker(groups: groups), AccountChecker(), CommitChecker(), QuotaChecker(),
                FollowingChecker { $0.string.hasPrefix(TorturePlan.ownPrefix) },
                ConvergenceChecker(),
                MergeChecker(
                    policies: MergedKeys.policies, timeTolerance: TorturePlan.timeTolerance,
                    isSealed: plan.isSealed),
                SealedChecker(),
                SurvivalChecker(timeTolerance: TorturePlan.timeTolerance, keepsStamps: true),
            ]
        }
    }

    /// The server's and that of the first device.
    private func makeDisks() throws -> [Tally.Event: SmallDisk] {
        guard !plan.isQuick else { return [:] }
        guard MountNamespace.isOwn else {
            Torture.say("without full disks: this system lets us mount none")
            return [:]
        }
        var disks: [Tally.Event: SmallDisk] = [:]
        for (event, name) in [
            (Tally.Event.serverDisksFull, "server"), (.deviceDisksFull, "device-0"),
        ] where event == .deviceDisksFull || plan.database == .sqlite {
            disks[event] = try SmallDisk(mountingAt: stage.path(name))
        }
        return disks
    }
}
