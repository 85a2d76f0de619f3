// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Logging
import TortureLanguage
import Ubiquity

/// An app without a screen: it opens a store, does what the lines of its input say, and prints a
/// ``WorkerMessage`` for each of them and for each change that comes from outside.
@main
struct Worker: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "UbiquityTestWorker")

    @Option var home: String
    @Option var store: String
    @Flag(help: "Do not print changes from outside.") var quiet = false
    @Flag(help: "Mirror a counter of the preferences, and count until the end.")
    var count = false
    @Flag(help: "Accept the torture's commands, and print messages.") var torture = false

    /// Ends with its input, and so with whoever started it.
    func run() async throws {
        var configuration = UbiquityConfiguration(identifier: store, home: home)
        configuration.logger = Logger(label: "worker") { StreamLogHandler.standardError(label: $0) }
        if torture { return try TortureApp(configuration).run() }
        var store: UbiquitousKeyValueStore? = try UbiquitousKeyValueStore(
            configuration: configuration)
        defer { store?.close() }
        if let store, count { return try await CountingApp(store).run() }
        if let store, !quiet { NoticePrinter.observe(store) }
        MessageOutput.print(WorkerMessage.ready)
        while let line = readLine() {
            switch try WorkerCommand(line) {
            case .reopen(let key, let text):
                store?.set(text, forKey: key)
                store = nil
                store = try UbiquitousKeyValueStore(configuration: configuration)
                MessageOutput.print(WorkerMessage.ready)
            case let command:
                if let store { try await command.run(on: store) }
            }
        }
    }
}

/// Prints each change that comes from outside, as the observer finds it.
enum NoticePrinter {
    /// For as long as the process lives.
    static func observe(_ store: UbiquitousKeyValueStore) {
        _ = NotificationCenter.default.addObserver(
            forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
            queue: nil
        ) { notification in
            let time = MonotonicTime.now
            MessageOutput.print(WorkerMessage.noticed(notice(notification, at: time)))
        }
    }

    private static func notice(
        _ notification: Notification, at time: UInt64
    ) -> WorkerMessage.Notice {
        let info = notification.userInfo ?? [:]
        let keys = info[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String] ?? []
        let store = notification.object as? UbiquitousKeyValueStore
        var values: [String: String] = [:]
        for key in keys { values[key] = store?.string(forKey: key) }
        return WorkerMessage.Notice(
            reason: info[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int, keys: keys,
            values: values, at: time)
    }
}
