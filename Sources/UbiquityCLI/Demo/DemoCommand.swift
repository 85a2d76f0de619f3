// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import ProcessHarness

struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Watch two devices and a server at work on this machine.",
        discussion: """
            Starts a server, signs in two devices, imports an app's preferences on one and shows \
            them on the other; then come changes, a killed server, writes without it, and a \
            conflict. Everything happens in a temporary folder, is checked, and is removed at the \
            end. Status 1: something that should be shown did not happen.
            """)

    @Option(
        help: ArgumentHelp("The property list to import. Default: a sample.", valueName: "file"),
        transform: notEmpty)
    var plist: String?

    func run() async throws {
        let preferences = try DemoPreferences(plist)
        let stage = try Stage("demo", ubiquity: .own)
        // Also if the output's reader has gone and the program ends in the middle of a line.
        stage.cleanAtExit()
        defer { stage.clean() }
        let story = Task {
            try await DemoStory(stage, preferences).tell()
        }
        let signals = Signals { story.cancel() }
        defer { signals.cancel() }
        try await story.value
    }
}
