// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import ExampleScreen
internal import Foundation
internal import ProcessHarness
internal import Ubiquity

/// Runs an example: two devices side by side, with a real server of their own, or the one device that
/// somebody is signed in on.
@MainActor
enum Stage {
    /// Runs the program to its end.
    static func run(_ app: (some Pane).Type) async {
        do { try await perform(app) } catch {
            FileHandle.standardError.write(Data("\(app.name): \(error)\n".utf8))
            exit(1)
        }
    }

    private static func perform<App: Pane>(_ app: App.Type) async throws {
        let arguments = try Arguments(
            Array(CommandLine.arguments.dropFirst()),
            home: ProcessInfo.processInfo.environment["UBIQUITY_HOME"], names: App.options)
        if arguments.isHelp { return print(help(app)) }
        guard arguments.isPrinting || Terminal.isThere else {
            throw Trouble("it needs a terminal; --print shows one picture without one")
        }
        try PreferencesFolder.use(in: arguments.home ?? StageFolder.path)
        let signals = [SIGINT, SIGTERM, SIGHUP].map { number in
            Signals([number]) { DispatchQueue.main.async { exit(128 + number) } }
        }
        defer { withExtendedLifetime(signals) {} }
        let apps: [RunningApp<App>] =
            if let home = arguments.home {
                [try RunningApp("this device", home: home, options: arguments.options)]
            } else { try await pair(arguments) }
        if arguments.isPrinting { return await printOnce(apps) }
        await Play(apps).run()
        for app in apps { app.store.synchronize() }
        exit(0)
    }

    private static func pair<App: Pane>(_ arguments: Arguments) async throws -> [RunningApp<App>] {
        let stage = try ProcessHarness.Stage(folder: StageFolder.path)
        stage.cleanAtExit()
        let server = try await ServerProcess.started(stage)
        var apps: [RunningApp<App>] = []
        for (number, name) in ["device A", "device B"].enumerated() {
            let (home, relay) = ("\(StageFolder.path)/\(name)", try Relay(to: { [server.port] }))
            let code = try await server.newCode(isFirst: number == 0)
            try await UbiquityAccount.signIn(
                server: try await relay.plugIn(), code: code, deviceName: name, home: home)
            apps.append(
                try RunningApp(
                    name, number: number, home: home,
                    suite: "\(App.name)-\(number)", relay: relay,
                    options: arguments.options))
        }
        for app in apps { try await app.store.synchronizeNow() }
        return apps
    }

    /// As it looks when all has come that there is; at once where no server can be reached.
    private static func printOnce<App: Pane>(_ apps: [RunningApp<App>]) async {
        for app in apps { try? await app.store.synchronizeNow() }
        // What the app does with what came is done on the main actor, after this.
        try? await Task.sleep(for: .milliseconds(200))
        print(Play(apps).frame(columns: 100, rows: nil).text)
        exit(0)
    }

    private static func help(_ app: (some Pane).Type) -> String {
        let own = app.options.map { " [\($0) VALUE]" }.joined()
        return """
            \(app.name) [--home FOLDER] [--print]\(own)

            Without a folder: two devices with their own server. With one, or UBIQUITY_HOME:
            the device that was signed in there with `ubiquity sign-in --home FOLDER`.
            --print shows one picture as text, and exits.
            """
    }
}
