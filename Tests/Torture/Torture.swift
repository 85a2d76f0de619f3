// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import ProcessHarness

extension TorturePlan.Database: ExpressibleByArgument {}

/// Real servers and devices as processes, which are killed while the network and the disks fail.
@main
struct Torture: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "UbiquityTorture",
        abstract: "Try to make real servers and devices lose, mix up or hide data.",
        discussion: """
            Apps in separate processes write, delete and sync on several devices; proxies delay, \
            cut and half-close their connections; processes and the server are killed; disks are \
            full. Then comes peace, in which everything must come to agree. The simulator's \
            checkers check the history.

            Status 1: a promise was broken; the folder with the history and all files remains. \
            Status 2: the torture itself could not continue.
            """)

    @Option(help: "How long the faults last.")
    var seconds = 60.0
    @Option(
        help: "The seed of all random choices; what the machine does cannot be repeated.")
    var seed: UInt64?
    @Option(help: "The number of devices, of all accounts together.")
    var devices = 4
    @Option(help: "The number of processes of each device.")
    var processes = 3
    @Option(help: "The number of accounts.")
    var accounts = 2
    @Option(
        help: ArgumentHelp(
            "The server's database: sqlite, or postgresql for three nodes that share a primary "
                + "with a synchronous standby.", valueName: "name"))
    var database = TorturePlan.Database.sqlite
    @Option(help: "The folder for all files. It must not exist.")
    var folder: String?
    @Flag(help: "Accounts are sealed while devices work, and get other keys.")
    var sealed = false
    @Flag(help: "No faults that take a minute to notice, no full disks, no wrong clocks.")
    var quick = false

    func validate() throws {
        guard seconds > 0, processes > 0, accounts > 0, devices >= accounts else {
            throw ValidationError(
                "There must be at least one of everything, and one device for each account.")
        }
    }

    func run() async throws {
        if !quick, !MountNamespace.isOwn { MountNamespace.enter() }
        // An app that was killed is no reason to end.
        signal(SIGPIPE, SIG_IGN)
        let seed = seed ?? .random(in: 0...999_999)
        let plan = TorturePlan(
            seconds: seconds, seed: seed, devices: devices, processes: processes,
            accounts: accounts, isQuick: quick, database: database, isSealed: sealed)
        let stage = try Stage(
            folder: folder ?? NSTemporaryDirectory() + "ubiquity-torture-" + UUID().uuidString)
        let status = await Self.perform(plan, stage)
        if status != 0 { throw ExitCode(status) }
    }

    /// - Returns: The exit status.
    private static func perform(_ plan: TorturePlan, _ stage: Stage) async -> Int32 {
        let signals = Signals {
            clean(stage)
            Foundation.exit(128 + SIGINT)
        }
        defer { signals.cancel() }
        do {
            let performance = try await Performance(plan, stage)
            let complaint = await performance.complaint()
            stage.end()
            performance.report()
            guard let complaint else {
                say("all promises kept")
                clean(stage)
                return 0
            }
            SmallDisk.keepAll()
            stage.keepFolder()
            say("A PROMISE WAS BROKEN: \(complaint)")
            say("The history and all files are in \(stage.folder).")
            return 1
        } catch {
            say("The torture could not begin: \(error)")
            clean(stage)
            return 2
        }
    }

    /// Leaves nothing behind.
    private static func clean(_ stage: Stage) {
        stage.end()
        SmallDisk.unmountAll()
        stage.clean()
    }

    static func say(_ line: String) {
        try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8))
    }
}
