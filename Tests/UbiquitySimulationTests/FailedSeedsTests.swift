// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquitySimulation

/// Seeds that failed once, each with what it found. What a seed draws changes with the simulator; that
/// the engine has what they asked for is in `FoundBySimulationTests` too.
struct FailedSeedsTests {
    private static let seeds: [(seed: UInt64, found: String)] = [
        (1, "A write that lost to a deletion older than the first download was shown forever."),
        (
            24,
            "A round trip ended while a newer write of the key waited: an older one was answered."
        ),
        (
            76,
            "A provisional timestamp was compared with a final one, and the later write was lost."
        ),
        (280, "A follower that was signed in again reported that it was not connected."),
        (
            464,
            "A clock that knew its error continued from its earlier timestamps, far ahead."
        ),
        (501, "Two processes gave two transactions one timestamp, and these got mixed."),
        (669, "The clock was set between two writes of two processes, and the earlier one won."),
        (839, "A follower's round trip ended before the later write of another device was there."),
        (1022, "A deletion of something deleted and forgotten was refused, with a notification."),
        (1452, "A change that came and went in one step caused a notification."),
        (1634, "A stream that had been at the answer's cursor already left a lost write shown."),
        (
            2067,
            "A server that was restored and set back accepted nothing until its clock had caught "
                + "up."
        ),
        (3063, "An answer that came after the stream had passed it left a lost write shown."),
        (
            4323,
            "A restored server was never told of a write whose answer, but not stream, had come."
        ),
        (4670, "The number of a wiped folder was given to another account."),
        (
            6690,
            "Clones wrote two transactions with one timestamp, and these got mixed on the server."
        ),
        (
            6588,
            "A deletion that found nothing to delete showed the previous value without a "
                + "notification."
        ),
        (
            7962,
            "A round trip ended while a write that had lost was to be sent to a restored server."
        ),
        (10_568, "A round trip ended while a write that was known to have lost was still shown."),
        (
            15_902,
            "A server's answer from before it was restored settled what the restored one lacked."
        ),
        (17_203, "A file that opened while it was left was given to the account that came next."),
    ]

    /// The seeds of runs with keys whose writes merge.
    private static let seedsWithPolicies: [(seed: UInt64, found: String)] = [
        (397, "The refusal of a part that the app had not seen was reported as a change."),
        (
            399,
            "Timestamps that became final with the first download changed the order of values."
        ),
        (599, "An earlier write won because its timestamp became final in another process."),
        (
            718,
            "A first download that waited for the app's own rule was notified as a server's change."
        ),
        (743, "A clone's older count took the place of a greater one."),
        (
            4332,
            "Writes in the server's future got new timestamps, and an array a different order."
        ),
    ]

    @Test(arguments: seedsWithPolicies)
    func `what once failed under policies does not fail again`(seed: UInt64, found: String) {
        var simulation = Simulation(seed: seed, steps: 500)
        simulation.nodes = 1
        #expect(simulation.run().violation == nil, "\(found)")
    }

    @Test(arguments: seeds)
    func `what once failed does not fail again`(seed: UInt64, found: String) {
        var simulation = Simulation(seed: seed, steps: 500)
        simulation.hasPolicies = false
        simulation.nodes = 1
        #expect(simulation.run().violation == nil, "\(found)")
    }
}
