// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import ProcessHarness

/// Real servers and devices as processes, which are killed while the network and the disks fail.
@main
struct Torture: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "UbiquityTorture",
        abstract: "Tries to make real servers and devices lose, mix up or hide data.",
        discussion: """
            Apps in processes of their own write, delete and sync on several devices; proxies delay, \
            cut and half-close their connections; processes and server are killed; disks are full. \
            Then there is peace, in which everything must come to agree. The simulator's checkers \
            read along.

            Status 1: a promise was broken; the folder with the history and all files stays. \
            Status 2: the torture itself could not go on.
            """)

    @Option(help: "How long the faults last.")
    var seconds = 60.0
    @Option(
        help: "What is drawn by chance begins with it; what the machine does cannot be repeated.")
    var seed: UInt64?
    @Option(help: "How many devices there are, of all accounts together.")
    var devices = 4
    @Option(help: "How many processes each device has.")
    var processes = 3
    @Option(help: "How many accounts there are.")
    var accounts = 2
    @Option(help: "Where everything is kept meanwhile. It must not exist.")
    var folder: String?
    @Flag(help: "Nothing that takes a minute to be noticed, and no full disks and wrong clocks.")
    var quick = false

    func validate() throws {
        guard seconds > 0, processes > 0, accounts > 0, devices >= accounts else {
            throw ValidationError("There must be some of everything, and a device an account.")
        }
    }

    func run() async throws {
        if !quick, !MountNamespace.isOwn { MountNamespace.enter() }
        // An app that was killed is no reason to end.
        signal(SIGPIPE, SIG_IGN)
        let seed = seed ?? .random(in: 0...999_999)
        let plan = TorturePlan(
            seconds: seconds, seed: seed, devices: devices, processes: processes,
            accounts: accounts, isQuick: quick)
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
