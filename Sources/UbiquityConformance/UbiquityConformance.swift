// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import UbiquitySimulation

/// Runs seeds with a client until one fails, or all have passed.
@main
struct UbiquityConformance: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ubiquity-conformance",
        abstract: "Try to make a client lose, mix up or hide data.",
        discussion: """
            Plays the devices, the network and a server with faults, in virtual time, and judges \
            what the client does. The client is a program that answers each line on its standard \
            input with one line; Protocol/conformance.md has the language. The same seed does the same \
            every time, if the client does.

              ubiquity-conformance --seeds 1...200 node Clients/JavaScript/test/conformance/conformance-client.js
            """)

    @Option(help: "Run one seed, and print what it determines.")
    var seed: UInt64?

    @Option(help: "Seeds FROM...TO.")
    var seeds = SeedRange(1, 200)

    @Option(help: "The number of steps under faults of each seed.")
    var steps = 300

    @Option(
        parsing: .upToNextOption,
        help: ArgumentHelp(
            "What to leave out, because the client does not have it yet.", valueName: "subject"))
    var without: [Subject] = []

    @Flag(help: "With --seed: print everything that happens.")
    var trace = false

    @Flag(help: "Do not shorten a failing seed: finding the shortest prefix takes many runs.")
    var noShrink = false

    @Argument(parsing: .captureForPassthrough, help: "The client's program and its arguments.")
    var client: [String]

    func validate() throws {
        guard steps >= 0 else { throw ValidationError("--steps must not be negative") }
        if trace, seed == nil { throw ValidationError("--trace needs a --seed") }
        switch command.first {
        case nil: throw ValidationError("name the client's program")
        case "-h", "--help": throw CleanExit.helpRequest(self)
        case let option? where option.hasPrefix("-"):
            throw ValidationError("\(option) is not an option")
        default: break
        }
    }

    private var command: [String] { client.first == "--" ? Array(client.dropFirst()) : client }

    func run() throws {
        let program = try ClientProgram(command)
        defer { program.end() }
        if let seed { return try runOne(seed, program) }
        var (count, steps, days) = (0, 0, Int64(0))
        var reported = ContinuousClock.now
        for seed in seeds.from...seeds.to {
            let run = conformanceRun(seed, steps: self.steps)
            let outcome = run.run(with: program)
            if outcome.violation != nil { try stop(at: run, outcome, program) }
            (count, steps) = (count + 1, steps + outcome.steps)
            days += outcome.simulatedMilliseconds
            if .now - reported > .seconds(10) {
                reported = .now
                let progress = "\(count) seeds, \(steps) steps under faults\n"
                FileHandle.standardError.write(Data(progress.utf8))
            }
        }
        print("\(count) seeds, \(steps) steps under faults, \(days / 86_400_000) days: no failure")
    }

    private func conformanceRun(_ seed: UInt64, steps: Int) -> ConformanceRun {
        ConformanceRun(seed: seed, steps: steps, leftOut: Set(without))
    }

    private func runOne(_ seed: UInt64, _ program: ClientProgram) throws {
        let run = conformanceRun(seed, steps: steps)
        let outcome = run.run(with: program, watching: trace ? { print("\($1)  \($0)") } : nil)
        print(
            "\(outcome.steps) steps under faults, \(outcome.simulatedMilliseconds) ms simulated, "
                + "digest \(outcome.digest)")
        print("  \(outcome.scenario)")
        try stop(at: run, outcome, program)
    }

    private func stop(
        at run: ConformanceRun, _ outcome: Simulation.Outcome, _ program: ClientProgram
    ) throws {
        guard let violation = outcome.violation else { return }
        print("seed \(run.seed) FAILED: \(violation.complaint)")
        print("  by \(violation.checker), at \(violation.time) ms, of \(run.steps) steps")
        if seed == nil { print("  with \(outcome.scenario)") }
        // A client that broke the rules of the conversation cannot be asked again.
        if !noShrink, !trace, violation.checker != ConformanceRun.harness,
            let (steps, complaint) = shortestFailure(run, program)
        {
            print("  the shortest prefix that fails: \(steps) steps: \(complaint)")
            print("  to repeat it: \(repetition(run.seed, steps))")
        } else {
            print("  to repeat it: \(repetition(run.seed, run.steps))")
        }
        throw ExitCode.failure
    }

    private func shortestFailure(
        _ run: ConformanceRun, _ program: ClientProgram
    ) -> (Int, String)? {
        for steps in 0...run.steps {
            let outcome = conformanceRun(run.seed, steps: steps).run(with: program)
            if let violation = outcome.violation { return (steps, violation.complaint) }
        }
        return nil
    }

    private func repetition(_ seed: UInt64, _ steps: Int) -> String {
        let leftOut = without.map(\.rawValue).joined(separator: " ")
        return "ubiquity-conformance --seed \(seed) --steps \(steps) --trace"
            + (leftOut.isEmpty ? "" : " --without \(leftOut)") + " -- "
            + command.joined(separator: " ")
    }
}

extension SeedRange: ExpressibleByArgument {}
extension Subject: ExpressibleByArgument {}
