// SPDX-License-Identifier: Apache-2.0

internal import ExampleScreen
internal import Foundation
internal import Logging
internal import ProcessHarness
internal import Ubiquity
internal import UbiquityDefaults

/// A device on the stage, with the app that runs on it.
@MainActor
final class RunningApp<App: Pane> {
    let name: String
    let pane: App
    let store: UbiquitousKeyValueStore
    /// Nil: the stage does not have it in its hands.
    private let relay: Relay?
    private(set) var isPluggedIn = true

    init(
        _ name: String, number: Int = 0, home: String, suite: String? = nil,
        relay: Relay? = nil, options: [String: String]
    ) throws {
        var configuration = UbiquityConfiguration(identifier: App.identifier, home: home)
        // It would write into the picture; what matters is in the status.
        configuration.logger = Logger(label: "example") { _ in SwiftLogNoOpLogHandler() }
        store = try UbiquitousKeyValueStore(configuration: configuration)
        self.name = name
        self.relay = relay
        pane = try App(
            StageDevice(
                number: number, store: store,
                preferences: suite.map(DefaultsDomain.suite) ?? .standard,
                defaults: suite.flatMap(UserDefaults.init(suiteName:)) ?? .standard, folder: home,
                options: options))
    }

    /// Goes offline, or online.
    func toggle() {
        guard let relay else { return }
        isPluggedIn.toggle()
        let (isPluggedIn, store) = (isPluggedIn, store)
        Task {
            guard isPluggedIn else { return relay.pullOut() }
            _ = try? await relay.plugIn()
            // Not at the next attempt of its own, which may be a minute away.
            try? await store.synchronizeNow()
        }
    }

    func frame(columns: Int, rows: Int, hasFocus: Bool) -> Frame {
        let title = Line(" \(name) ", hasFocus ? .reversed : .bold) + "  " + Line(store.status)
        let lines = [title, ""] + pane.lines.map { " " + $0 }
        return Frame(lines, columns: columns, rows: rows, ground: pane.ground)
    }
}
