// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness
import Ubiquity
import UbiquityCore

extension DemoStory {
    /// An app's preferences, imported on one device, appear on the other.
    func share(_ a: DemoDevice, _ b: DemoDevice) async throws {
        DemoScreen.chapter("An app's preferences follow the person")
        let values = preferences.values
        let keys = Phrase.keys(values.count)
        try await step("A imports \(preferences.name), \(keys); B gets the same values") {
            try a.store.write(values.mapValues(Content.value))
            try await until("their arrival on B") { b.store.values == values }
        }
        let bytes = Phrase.bytes(b.store.engineStatus.usage.bytes)
        DemoScreen.remark("\(bytes); every type kept: \(Self.types(in: values))")
        for (key, value) in Self.examples(in: values) {
            try await readByCommand(key, value, b)
        }
    }

    /// Another process of B finds the value too.
    private func readByCommand(
        _ key: Key, _ value: PropertyListValue, _ b: DemoDevice
    ) async throws {
        try await step("On B, `ubiquity get \(key)` prints \(value.line(28))") {
            let run = try await stage.run(
                "get", key.string, "--store", DemoDevice.identifier, "--home", b.home)
            let printed = run.output.trimmingCharacters(in: .newlines)
            guard run.errors.isEmpty, printed == value.text.trimmingCharacters(in: .newlines) else {
                throw Failure(.no, "it printed \(printed)\(run.errors)")
            }
        }
    }

    private static func types(in values: [Key: PropertyListValue]) -> String {
        let counts = Dictionary(grouping: values.values, by: \.typeName).mapValues(\.count)
        return counts.sorted { $0.value > $1.value || $0.value == $1.value && $0.key < $1.key }
            .map { "\($0.value) \($0.value == 1 ? $0.key : plural($0.key))" }.joined(
                separator: ", ")
    }

    private static func plural(_ type: String) -> String {
        switch type {
        case "dictionary": "dictionaries"
        case "data": "data"
        default: type + "s"
        }
    }

    /// A string and a date, if there are any.
    private static func examples(
        in values: [Key: PropertyListValue]
    ) -> [(Key, PropertyListValue)] {
        ["string", "date"].compactMap { type in
            values.filter { $0.value.typeName == type && $0.key.string.allSatisfy(\.isLetter) }
                .min { $0.key < $1.key }.map { ($0.key, $0.value) }
        }
    }

    /// A change is on the other device almost at once.
    func change(_ a: DemoDevice, _ b: DemoDevice) async throws {
        DemoScreen.chapter("Changes arrive quickly, in both directions")
        try await change("EditorFontSize", to: 15, on: a, seenBy: b)
        try await change("EditorFontSize", to: 16.5, on: b, seenBy: a)
    }

    private func change(
        _ key: String, to size: Double, on author: DemoDevice, seenBy other: DemoDevice
    ) async throws {
        try await step("\(author.name) sets \(key) to \(size); \(other.name) gets it") {
            author.store.set(size, forKey: key)
            try await until("its arrival") { other.store.double(forKey: key) == size }
        }
    }

    /// Both write while there is no server, and nothing is lost.
    func goOffline(_ a: DemoDevice, _ b: DemoDevice) async throws {
        DemoScreen.chapter("Without a server, the devices continue")
        // An answer may still be on its way to a device whose change the other already has.
        try await until("the last answer") { a.pendingKeys + b.pendingKeys == 0 }
        let before = a.store.values
        let killing =
            servers.isShared ? "Both servers are killed" : "The server's process is killed"
        try await step("\(killing) (kill -9)") { try await servers.kill() }
        try await step("A and B both write; it is on their disks when synchronize() returns") {
            try write(["ThemeName": "Night", "NoteA": "written on A, offline"], on: a)
            try write(["ExportFormat": "html", "NoteB": "written on B, offline"], on: b)
        }
        let all = before.merging(Self.offline) { $1 }
        let starting =
            servers.isShared
            ? "Both servers start again at the same addresses"
            : "The server starts again at the same address"
        try await step(starting) {
            try await servers.start()
        }
        try await step("A and B have each other's changes; nothing is lost or waiting") {
            try await until("their agreement") {
                a.store.values == all && b.store.values == all
                    && a.pendingKeys + b.pendingKeys == 0
            }
        }
    }

    private static var offline: [Key: PropertyListValue] {
        let values = [
            "ThemeName": "Night", "NoteA": "written on A, offline", "ExportFormat": "html",
            "NoteB": "written on B, offline",
        ]
        return Dictionary(
            uniqueKeysWithValues: values.compactMap { key, text in
                (try? Key(key)).map { ($0, PropertyListValue.string(text)) }
            })
    }

    private func write(_ values: [String: String], on device: DemoDevice) throws {
        for (key, text) in values { device.store.set(text, forKey: key) }
        guard device.store.synchronize() else {
            throw Failure(.no, "the disk of \(device.name) failed")
        }
        guard device.pendingKeys == values.count else {
            throw Failure(.no, "\(device.pendingKeys) keys wait on \(device.name)")
        }
    }
}
