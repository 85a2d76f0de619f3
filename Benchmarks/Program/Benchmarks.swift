// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import ProcessHarness

@main
struct Benchmarks: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ubiquity-benchmarks",
        abstract: "Measures the library and the server, and prints a table in Markdown.",
        subcommands: [Run.self, Role.self], defaultSubcommand: Run.self)
}

/// Not asynchronous: a thread that waits must not be one that the library's tasks need.
struct Run: ParsableCommand {
    enum Name: String, CaseIterable, ExpressibleByArgument {
        case latency
        case firstSync = "first-sync"
        case local
        case idle
        case throughput
    }

    @Option(help: "One measurement alone; may be given again.")
    var only: [Name] = []

    @Option(help: "Where the folder of the run is made, on the disk to be measured.")
    var folder = NSTemporaryDirectory()

    /// All of it together takes about two minutes.
    private static let secondsMax = 300

    func run() throws {
        signal(SIGPIPE, SIG_IGN)
        let stage = try Stage("benchmarks", in: folder, environment: Self.environment)
        let watch = Self.endEarly(stage)
        defer {
            watch.cancel()
            stage.clean()
        }
        var report = Report(machine: Machine.description)
        for name in Name.allCases where only.isEmpty || only.contains(name) {
            note("Measuring: \(name.rawValue)")
            report.measurements += try Self.measure(name, stage)
        }
        print(report.text(command: command))
    }

    /// With a home that is thrown away.
    private static func environment(_ folder: String) -> [String: String] {
        let variables = ["HOME", "CFFIXED_USER_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"]
        return Dictionary(uniqueKeysWithValues: variables.map { ($0, folder) })
    }

    private static func measure(
        _ name: Name, _ stage: Stage
    ) throws -> [Measurement] {
        switch name {
        case .latency: try ChangeLatency.measure(stage)
        case .firstSync: try Opening.measureFirstSync(stage)
        case .local: try LocalCalls.measure(stage)
        case .idle: try Idle.measure(stage)
        case .throughput: try PushThroughput.measure(stage)
        }
    }

    private var command: String {
        let options = only.map { " --only \($0.rawValue)" }.joined()
        return "make benchmark"
            + (only.isEmpty ? "" : " BENCHMARK_FLAGS=\"\(options.dropFirst())\"")
    }

    /// Cleans up after Ctrl-C too, and when a run takes too long.
    private static func endEarly(_ stage: Stage) -> Signals {
        let end: @Sendable () -> Void = {
            stage.clean()
            note("The run was ended early.")
            Foundation.exit(1)
        }
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(secondsMax), execute: end)
        return Signals(handle: end)
    }
}
