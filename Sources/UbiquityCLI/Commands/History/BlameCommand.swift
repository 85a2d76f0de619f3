// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore

struct BlameCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "blame",
        abstract: "Show when and on which device each key was last written.",
        discussion: """
            Also shows the value before, if the server's history still has it. Times are in your \
            time zone. Keys that do not exist any more are in `ubiquity history`.

            JSON: a list of {"key", "version", "value", "before", "made", "device", "deviceName"}; \
            "before" is null if the key had no value, or if its value is not known any more.
            """)

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup var time: TimeoutOption
    @OptionGroup var json: ValueJSONOption

    func run() async throws {
        let policy = SyncPolicy(timeout: time.seconds(30))
        let (rows, devices) = try await OpenStore.with(store, policy, ifMissing: .refuse) { open in
            try await open.exchange()
            return (try await open.newestVersions(), try await open.devices())
        }
        if json.isOn {
            return json.print(.array(rows.map { Self.json($0.now, $0.before, devices) }))
        }
        if rows.isEmpty { return Output.note("The store is empty.") }
        let list = VersionList(versions: [], devices: devices)
        let names = KeyNames(rows.map(\.now.key))
        Table(
            header: ["KEY", "WHEN", "DEVICE", "VALUE", "BEFORE"],
            rows: rows.map { row in
                let now = row.now
                return [
                    names.shown(now.key), list.time(now.stamp), list.name(of: now.stamp.device),
                ]
            },
            values: rows.map { [$0.now.valueText, $0.before?.valueText ?? { _ in "-" }] }
        ).print()
    }

    private static func json(
        _ now: KeyVersion, _ before: KeyVersion?, _ devices: AccountDevices
    ) -> JSON {
        [
            "key": .string(now.key.string), "version": .string(now.name),
            "value": now.value.map(JSON.value) ?? .null,
            "before": before?.value.map(JSON.value) ?? .null,
            "made": .string(Phrase.isoTime(now.stamp.timestamp.milliseconds)),
            "device": .string(now.stamp.device.description),
            "deviceName": .optional(devices.names[now.stamp.device]),
        ]
    }
}
