// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import ProcessHarness

/// Two devices and a server at work, told and checked step by step: `make demo`.
@main
struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Watch two devices and a server at work on this machine.",
        discussion: """
            Starts a server, signs in two devices, imports an app's preferences on one and shows \
            them on the other; then come changes, a killed server, writes without it, and a \
            conflict. Everything happens in a temporary folder, is checked, and is removed at the \
            end. Status 1: something that should be shown did not happen.

            With --database postgresql: two servers on a PostgreSQL of the demo's own, which must \
            be installed. One of them is killed, and its device goes on through the other.
            """)

    @Option(
        help: ArgumentHelp("The property list to import. Default: a sample.", valueName: "file"),
        completion: .file())
    var plist: String?

    @Option(help: ArgumentHelp("The servers' database.", valueName: "kind"))
    var database = DemoDatabase.sqlite

    func run() async throws {
        let preferences = try DemoPreferences(plist)
        let stage = try Stage("demo")
        // Whoever reads the output may stop; what was started is ended all the same.
        signal(SIGPIPE, SIG_IGN)
        stage.cleanAtExit()
        defer { stage.clean() }
        let story = Task {
            try await DemoStory(stage, preferences, database).tell()
        }
        let signals = Signals { story.cancel() }
        defer { signals.cancel() }
        do { try await story.value } catch is CancellationError { throw Trouble("interrupted") }
    }
}
