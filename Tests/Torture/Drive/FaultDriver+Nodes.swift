// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness
import UbiquityCore

/// Faults of nodes and their database.
extension FaultDriver {
    mutating func breakNodes() async throws {
        while await waits(run.plan.serverKillInterval) {
            guard let node = run.nodes.randomElement(using: &random) else { return }
            try node.server.mustRun()
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<50:
                try await run.kill(node)
                await random.pause(milliseconds: 3_000)
                try await run.start(node)
            case 50..<75: await stop(node)
            default: await cutDatabase(from: node)
            }
        }
    }

    /// It may hold locks, and wakes when its transactions have been ended.
    private mutating func stop(_ node: TortureNode) async {
        note(.nodeStops, "node \(node.number)")
        node.server.signal(SIGSTOP)
        await random.pause(milliseconds: TorturePlan.nodeStopMax)
        node.server.signal(SIGCONT)
        run.chronicle.note("node \(node.number) wakes")
    }

    private mutating func cutDatabase(from node: TortureNode) async {
        note(.databaseCuts, "node \(node.number)")
        // A node that starts without a way to the promoted primary cannot know of it.
        let isSilent =
            random.chance(40) && !run.plan.isQuick && run.database?.hasFormer == false
        for way in node.ways {
            if isSilent {
                await way.silence(newOnesToo: random.chance(50))
            } else {
                await way.cut(all: random.chance(50))
            }
        }
        guard isSilent else { return }
        await random.pause(milliseconds: 3_000)
        for way in node.ways { await way.endSilence() }
    }

    mutating func breakDatabase() async throws {
        guard let database = run.database else { return }
        while await waits(run.plan.primaryKillInterval) {
            if random.chance(15) {
                note(.primaryStops, "the database")
                try await database.freezePrimary(true)
                await random.pause(milliseconds: TorturePlan.nodeStopMax)
                try await database.freezePrimary(false)
                continue
            }
            note(.primaryKills, "the database")
            try await database.killPrimary()
            await random.pause(milliseconds: 1_500)
            if random.chance(15) {
                try await database.restartPrimary()
                run.chronicle.note("the killed primary is back")
                continue
            }
            try await database.promote()
            note(.promotions, "the database")
            await random.pause(milliseconds: 1_000)
            if random.chance(40) { try await bringBackFormer(database) }
            try await database.rebuildStandby()
            run.chronicle.note("the killed primary is a standby")
        }
    }

    /// The killed primary's machine comes back, and nobody has told it. Half of the time nodes find it
    /// before the new one.
    private mutating func bringBackFormer(_ database: DatabasePair) async throws {
        database.hasFormer = true
        // Until nobody connects in silence any more.
        try? await Task.sleep(for: .milliseconds(8_500))
        try await database.restartFormer()
        note(.formerPrimaries, "the database")
        for node in run.nodes {
            await random.pause(milliseconds: 1_000)
            for way in node.ways { await way.cut(all: true) }
        }
        await random.pause(milliseconds: 5_000)
        try await database.endFormer()
        database.hasFormer = false
    }

    private func note(_ fault: Tally.Event, _ what: String) {
        run.probe.noteFault(fault)
        run.chronicle.count(fault)
        run.chronicle.note("\(fault.rawValue): \(what)")
    }
}
