// SPDX-License-Identifier: Apache-2.0

import UbiquityCore
import UbiquitySimulation

/// One seed with a client: a phase with faults, then peace, in which everything must settle.
struct ConformanceRun {
    let seed: UInt64
    let steps: Int
    let leftOut: Set<Subject>

    /// The name of whoever complains about a broken conversation.
    static let harness = "the harness"

    func run(
        with program: ClientProgram, watching: ((Observation, Int64) -> Void)? = nil
    ) -> Simulation.Outcome {
        let chance = Chance(seed: seed)
        let scenario = Scenario(
            conformance: chance, sharing: Chance(seed: ~seed),
            isSealed: Chance(seed: seed &* 0x27D4_EB2F).coin(), isLarge: seed % 10 == 0,
            without: leftOut)
        let clock = TrueTime()
        // The checkers of the server would only test the server that is played here.
        let journal = Journal(
            checkers: scenario.deviceCheckers(clock) + [LeaseChecker(), DiskChecker()],
            clock: clock,
            watching: watching)
        let world = ConformanceWorld(
            scenario: scenario, chance: chance, journal: journal, clock: clock, program: program)
        return world.outcome(steps: steps)
    }
}

/// Something that a client may not have yet, and runs can leave out. In the order of
/// Protocol/conformance.md.
enum Subject: String, CaseIterable {
    /// Lost, late and repeated requests and answers, and broken connections.
    case network
    case clocks
    case kills
    /// Saves that the disk refuses, or that come to it although it says otherwise, and disks that are
    /// replaced.
    case disk
    /// Crashes, and answers that the server is busy, full or does not know the credential.
    case server
    /// Servers that are restored from an older copy.
    case restores
    /// Dropped tombstones.
    case compaction
    /// Limits that are reached or lowered.
    case limits
    /// Accounts without a free stream, and proxies that hold streams back.
    case polling
    case policies
    /// Several processes on a device, which stand still or find their disk closed.
    case processes
    /// Sealed accounts, whose key a device gets a while after its sign-in.
    case sealing

    var faults: Set<Fault> {
        switch self {
        case .network:
            [.requestLost, .answerLost, .duplicate, .slowAnswer, .cut, .halfOpen, .partition]
        case .clocks: [.clockJump, .drift]
        case .kills: [.processKill, .machineCrash]
        case .disk: [.diskFull, .saveUncertain]
        case .server: [.serverCrash, .serverSlow, .serverBusy, .overflow, .unauthorized]
        case .restores: [.serverRestore]
        case .compaction: [.compactTombstones]
        case .limits: [.limitsChange]
        case .polling, .policies, .sealing: []
        case .processes: [.processStop, .diskUnreadable]
        }
    }
}

extension Scenario {
    /// - Parameters:
    ///   - sharing: The source for several processes. It is separate so that for a client without
    ///     them nothing else changes.
    ///   - isSealed: Whether the account is sealed from its first day. Drawn apart likewise.
    ///   - isLarge: Whether values and stores have the limits that servers have.
    ///   - leftOut: What the client may not have. The rest of the run does not change.
    fileprivate init(
        conformance chance: Chance, sharing: Chance, isSealed: Bool, isLarge: Bool,
        without leftOut: Set<Subject>
    ) {
        self.init()
        devices = chance.pick([1, 2, 2, 3, 3, 4])
        keys = chance.pick([1, 3, 6])
        groups = chance.pick([0, 1, 1, 2])
        groupSize = chance.pick([2, 3])
        policies = MergePolicy.allCases.filter { _ in chance.perMille(200) }
        partsMax = chance.pick([60, 0, 2, 8])
        firstSync = chance.pick([.serverWins, .timestamps])
        allowance = Allowance(
            burst: chance.pick([2, 10, 100]), perSecond: chance.pick([0.5, 5, 50]))
        workInterval = chance.pick([20, 300, 3_000, 60_000])
        faultInterval = chance.pick([500, 5_000, 60_000])
        delayMax = chance.pick([2, 100, 3_000])
        flushMax = chance.pick([1, 20, 500])
        skewHoursMax = chance.pick([0, 1, 30])
        limits.key = .utf8Bytes(16)
        let bytes = chance.pick([300, 1_000, 4_000])
        let keysMax = chance.pick([6, 12, 1_024])
        let valueBytesMax = chance.pick([100, 1_000])
        limits.pushBytesMax = chance.pick([600, 8 << 20])
        if !isLarge, !leftOut.contains(.limits) {
            (limits.storeBytesMax, limits.keysMax, limits.valueBytesMax) = (
                bytes, keysMax, valueBytesMax
            )
        }
        let isPolling = chance.perMille(150)
        let isBuffering = chance.coin()
        if isPolling, !leftOut.contains(.polling) {
            if isBuffering {
                qualities = [LineQuality(isBuffering: true), LineQuality()]
            } else {
                streamsMax = 1
            }
        }
        // One run in ten has no faults: its failures have other causes.
        var drawn: Set<Fault> = []
        for subject in Subject.allCases {
            let source = subject == .processes ? sharing : chance
            for fault in subject.faults.sorted(by: { $0.rawValue < $1.rawValue })
            where source.coin() { drawn.insert(fault) }
        }
        if chance.perMille(900) { faults = drawn }
        if !leftOut.contains(.processes) { processes = sharing.int(1...2) }
        for subject in leftOut { faults.subtract(subject.faults) }
        if leftOut.contains(.clocks) { skewHoursMax = 0 }
        if leftOut.contains(.policies) { policies = [] }
        guard isSealed, !leftOut.contains(.sealing) else { return }
        self.isSealed = true
        // A sealed account takes nothing from a server whose clock is a day ahead of the device's.
        skewHoursMax = min(skewHoursMax, 1)
        faults.remove(.clockJump)
        // Parts of these are renamed when a device gets the key, which no checker follows here.
        policies.removeAll { $0.isExtremum || $0 == .dictionary }
    }
}
