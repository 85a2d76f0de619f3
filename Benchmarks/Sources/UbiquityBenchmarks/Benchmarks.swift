// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation

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
        let workshop = try Workshop(in: folder)
        let watch = Self.endEarly(workshop)
        defer {
            watch.cancel()
            workshop.clean()
        }
        var report = Report(machine: Machine.description)
        for name in Name.allCases where only.isEmpty || only.contains(name) {
            note("Measuring: \(name.rawValue)")
            report.measurements += try Self.measure(name, workshop)
        }
        print(report.text(command: command))
    }

    private static func measure(
        _ name: Name, _ workshop: Workshop
    ) throws -> [Measurement] {
        switch name {
        case .latency: try ChangeLatency.measure(workshop)
        case .firstSync: try Opening.measureFirstSync(workshop)
        case .local: try LocalCalls.measure(workshop)
        case .idle: try Idle.measure(workshop)
        case .throughput: try PushThroughput.measure(workshop)
        }
    }

    private var command: String {
        let options = only.map { " --only \($0.rawValue)" }.joined()
        return only.isEmpty ? "make benchmark" : "ubiquity-benchmarks\(options)"
    }

    /// Cleans up after Ctrl-C too, and when a run takes too long.
    private static func endEarly(_ workshop: Workshop) -> any DispatchSourceSignal {
        let end: @Sendable () -> Void = {
            workshop.clean()
            note("The run was ended early.")
            Foundation.exit(1)
        }
        signal(SIGINT, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: SIGINT)
        source.setEventHandler(handler: end)
        source.resume()
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(secondsMax), execute: end)
        return source
    }
}
