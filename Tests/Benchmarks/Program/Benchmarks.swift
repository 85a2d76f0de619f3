// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation

/// A device that `scripts/benchmark` measures. It does one thing, and prints lines of JSON.
///
/// Not asynchronous: a thread that waits must not be one that the library's tasks need.
@main
struct Benchmarks: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ubiquity-benchmarks",
        abstract: "A device that scripts/benchmark measures.")

    enum Role: String, CaseIterable, ExpressibleByArgument {
        /// Writes each line of its input; at the end, prints when.
        case write
        /// Prints when each value that another device wrote became readable.
        case watch
        /// Prints how long it took from the opening until the whole sample store was readable.
        case open
        /// Measures the calls that never leave the process.
        case local
        /// Measures what a connected store costs that nobody uses.
        case idle
    }

    @Argument var role: Role

    @Option(help: "The folder of a device that is signed in.")
    var home: String

    @Option(help: "How long `idle` measures.")
    var seconds: UInt32 = 40

    func run() throws {
        switch role {
        case .write: try Self.say(Change.write(home: home))
        case .watch: try Change.watch(home: home) { try? Self.say($0) }
        case .open: try Self.say(Opening.measure(home: home))
        case .local: try Self.say(LocalCalls.measure(home: home))
        case .idle: try Self.say(Idle.measure(home: home, seconds: seconds))
        }
    }

    private static func say(_ answer: some Encodable) throws {
        FileHandle.standardOutput.write(try JSONEncoder().encode(answer) + Data("\n".utf8))
    }
}

/// Nanoseconds of a clock that all processes of the machine share.
func nanoseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}
