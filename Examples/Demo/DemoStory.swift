// SPDX-License-Identifier: Apache-2.0

import ProcessHarness
import Ubiquity
import UbiquityCore

/// The scenes of the demo. Every line is verified before it is printed.
struct DemoStory {
    let stage: Stage
    let preferences: DemoPreferences
    let servers: DemoServers

    init(_ stage: Stage, _ preferences: DemoPreferences, _ database: DemoDatabase) throws {
        self.stage = stage
        self.preferences = preferences
        servers = try DemoServers(stage, database)
    }

    func tell() async throws {
        let begin = ContinuousClock.now
        defer { servers.close() }
        let count = servers.isShared ? "two servers" : "one server"
        DemoScreen.print("Two devices, \(count), in \(stage.folder)")
        try await openServer()
        var (a, b) = try await signIn()
        defer {
            a.close()
            b.close()
        }
        try await share(a, b)
        try await change(a, b)
        try await loseNode(a, b)
        try await goOffline(a, b)
        try await playLevels(a, &b)
        let time = DemoScreen.text(begin.duration(to: .now))
        DemoScreen.chapter("All of this was checked as it happened, in \(time).")
    }

    // MARK: - Steps

    /// Performs a step and prints it with its duration.
    /// - Throws: ``Trouble`` that names the step, if its effect did not happen.
    func step<Result>(
        _ text: String, _ body: () async throws -> Result
    ) async throws -> Result {
        let begin = ContinuousClock.now
        do {
            let result = try await body()
            DemoScreen.done(text, begin.duration(to: .now))
            return result
        } catch {
            try Task.checkCancellation()
            DemoScreen.failed(text)
            throw Trouble("the demo failed at \"\(text)\": \(error)")
        }
    }

    /// The longest wait for anything.
    private static let patience = Duration.seconds(20)

    /// Waits until a condition holds. Checks often, because the time is shown.
    func until(_ what: String, _ isSo: () -> Bool) async throws {
        let deadline = ContinuousClock.now.advanced(by: Self.patience)
        while !isSo() {
            guard ContinuousClock.now < deadline else {
                throw Trouble("\(what) did not happen within \(Self.patience)")
            }
            try await Task.sleep(for: .microseconds(250), tolerance: .zero)
        }
    }

    // MARK: - The server

    private func openServer() async throws {
        guard servers.isShared else {
            DemoScreen.chapter("A server, and a person's two devices")
            return try await step("A server starts, in its own process") {
                try await servers.start()
            }
        }
        DemoScreen.chapter("Two servers on one PostgreSQL, and a person's two devices")
        try await step("Two servers start, each in its own process") { try await servers.start() }
    }

    private func signIn() async throws -> (DemoDevice, DemoDevice) {
        let (homeA, homeB) = (stage.path("a"), stage.path("b"))
        try await step("A new account; device A and device B sign in to it") {
            try await servers.signIn("device A", isFirst: true, home: homeA)
            try await servers.signIn("device B", at: 1, home: homeB)
        }
        return try await step("An app on each device opens the store, and connects") {
            let (a, b) = (try DemoDevice("A", home: homeA), try DemoDevice("B", home: homeB))
            try await until("the connection") { a.isConnected && b.isConnected }
            return (a, b)
        }
    }
}
