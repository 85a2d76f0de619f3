// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import UbiquitySimulation

/// Runs seeds until one fails, or all have passed.
@main
struct UbiquitySimulator: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ubiquity-simulator",
        abstract: "Try to make the sync engine lose, mix up or hide data.",
        discussion: """
            Each seed determines people, devices, apps, limits and faults. In virtual time, they \
            work first under faults and then in peace, in which everything must come to agree. \
            Checkers watch each promise. The same seed does the same in every process.
            """)

    @Option(help: "Run one seed, and print what it determines.")
    var seed: UInt64?

    @Option(help: "Seeds FROM...TO. Without this and --seed: from 1, until stopped.")
    var seeds: SeedRange?

    @Option(help: "The number of steps under faults of each seed.")
    var steps = 500

    @Option(
        help: "The number of the server's nodes. Without this, one seed in six has two to four.")
    var nodes: Int?

    @Flag(help: "With --seed: print everything that happens.")
    var trace = false

    @Flag(help: "Do not shorten a failing seed: finding the shortest prefix takes many runs.")
    var noShrink = false

    func validate() throws {
        guard steps >= 0 else { throw ValidationError("--steps must not be negative") }
        if let nodes, nodes < 1 { throw ValidationError("--nodes must be at least 1") }
        if trace, seed == nil { throw ValidationError("--trace needs a --seed") }
        if seed != nil, seeds != nil {
            throw ValidationError("either --seed or --seeds, not both")
        }
    }

    func run() throws {
        if let seed { return try runOne(simulation(seed)) }
        try runMany(seeds ?? SeedRange(1, .max))
    }

    private func simulation(_ seed: UInt64) -> Simulation {
        var simulation = Simulation(seed: seed, steps: steps)
        simulation.nodes = nodes
        return simulation
    }

    private func runOne(_ simulation: Simulation) throws {
        let outcome = simulation.run(watching: trace ? { print("\($1)  \($0)") } : nil)
        print(outcome.summary)
        try stop(at: simulation, outcome)
    }

    private func runMany(_ seeds: SeedRange) throws {
        var tally = Tally()
        for seed in seeds.from...seeds.to {
            let simulation = simulation(seed)
            let outcome = simulation.run()
            tally.add(outcome)
            if tally.isTimeToReport { tally.report() }
            if outcome.violation != nil {
                tally.report()
                try stop(at: simulation, outcome)
            }
        }
        tally.report()
    }

    private func stop(at simulation: Simulation, _ outcome: Simulation.Outcome) throws {
        guard let violation = outcome.violation else { return }
        print("seed \(simulation.seed) FAILED: \(violation.complaint)")
        print("  by \(violation.checker), at \(violation.time) ms, of \(simulation.steps) steps")
        print("  with \(outcome.scenario)")
        if !noShrink, let shortest = simulation.shortestFailure() {
            let again = shortest.run().violation
            print(
                "  the shortest prefix that fails: \(shortest.steps) steps: "
                    + "\(again?.complaint ?? "")"
            )
            print("  to repeat it: \(Self.command(shortest))")
        }
        throw ExitCode.failure
    }

    private static func command(_ simulation: Simulation) -> String {
        "ubiquity-simulator --seed \(simulation.seed) --steps \(simulation.steps) --trace"
            + (simulation.nodes.map { " --nodes \($0)" } ?? "")
    }
}

extension SeedRange: ExpressibleByArgument {}
