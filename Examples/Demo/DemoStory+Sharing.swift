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
        for entry in preferences.leftOut { DemoScreen.remark("Left out: \(entry)") }
        try await step(
            "A imports \(preferences.name), \(values.count) keys; B gets the same values"
        ) {
            try a.store.write(values.mapValues(Content.value))
            try await until("their arrival on B") { b.store.values == values }
        }
        let bytes = b.store.engineStatus.usage.bytes
        DemoScreen.remark("\(bytes) bytes; every type kept: \(Self.types(in: values))")
        for (key, text) in Self.examples(in: values) { try await readByCommand(key, text, b) }
    }

    /// Another process of B finds the value too.
    private func readByCommand(_ key: Key, _ text: String, _ b: DemoDevice) async throws {
        try await step("On B, `ubiquity get \(key)` prints \(text)") {
            let run = try await stage.run(
                "get", key.string, "--store", DemoDevice.identifier, "--home", b.home)
            guard run.errors.isEmpty, run.output == text + "\n" else {
                throw Trouble("it printed \(run.output)\(run.errors)")
            }
        }
    }

    private static func types(in values: [Key: PropertyListValue]) -> String {
        // The name of each value's case.
        let names = values.values.compactMap { Mirror(reflecting: $0).children.first?.label }
        let counts = Dictionary(grouping: names) { $0 }.mapValues(\.count)
        return counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "\($0.value) × \($0.key)" }.joined(separator: ", ")
    }

    /// A short string and a date, if there are any, as the command line prints them.
    private static func examples(in values: [Key: PropertyListValue]) -> [(Key, String)] {
        let all = values.sorted { $0.key < $1.key }.filter { $0.key.string.allSatisfy(\.isLetter) }
        let strings = all.compactMap { key, value -> (Key, String)? in
            guard case .string(let string) = value else { return nil }
            let text = string.string
            let isPlain = text.unicodeScalars.allSatisfy {
                $0.properties.generalCategory != .control
            }
            return text.count < 30 && isPlain ? (key, text) : nil
        }
        let dates = all.compactMap { key, value -> (Key, String)? in
            guard case .date(let seconds) = value else { return nil }
            return (key, DateText.text(of: seconds))
        }
        return [strings.first, dates.first].compactMap(\.self)
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
            throw Trouble("the disk of \(device.name) failed")
        }
        guard device.pendingKeys == values.count else {
            throw Trouble("\(device.pendingKeys) keys wait on \(device.name)")
        }
    }
}
