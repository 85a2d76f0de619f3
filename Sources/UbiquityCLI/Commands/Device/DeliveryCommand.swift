// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct DeliveryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delivery",
        abstract: "Show which of your devices have a store's changes.",
        discussion: """
            Of the devices that may use the store, as `ubiquity device list` lists all. Syncs first. A device has a change when it has saved it on its disk and said so, which \
            it does within about a minute. What this device has not sent yet, no other has. The \
            clock is compared with the server's when a device sends something.

            JSON: a list of {"id", "name", "isThis", "seen", "isCurrent", "behind", "hasStore", \
            "clockAhead", "version"}; "clockAhead" is in seconds; it and "version" are null if the \
            device has not said.
            """)

    @Argument(
        help: "Only whether they have this key's value.", completion: Completions.keys,
        transform: notEmpty)
    var key: String?

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup var time: TimeoutOption
    @OptionGroup var json: JSONOption

    func run() async throws {
        let policy = SyncPolicy(timeout: time.seconds())
        let delivery = try await OpenStore.with(store, policy, ifMissing: .refuse) { open in
            guard open.account != nil else { throw Failure.notSignedIn }
            await open.catchUp()
            return try await open.store.delivery(of: key)
        }
        SeenNames.remember(devices: delivery.devices.map(\.name), in: store.home)
        let rows = delivery.devices.map { device in
            [
                device.name.listed + (device.isThisDevice ? " (this one)" : ""),
                Phrase.time(device.lastSeen.milliseconds), device.state,
                Phrase.clock(device.clockAhead.map { Int64($0 * 1_000) }),
                device.version ?? "unknown",
            ]
        }
        json.print(
            delivery.devices.map(JSON.delivery),
            or: Table(header: ["NAME", "LAST SEEN", "HAS", "CLOCK", "VERSION"], rows: rows),
            ifEmpty: "No devices are signed in.")
    }
}

extension UbiquityDelivery.Device {
    /// The changes that the device has, in words.
    var state: String {
        if isCurrent { return "everything" }
        if !hasStore { return "never used it" }
        return changesBehind == 0
            ? "not known" : "all but \(Phrase.counted(changesBehind, "change"))"
    }
}

extension JSON {
    fileprivate static func delivery(_ device: UbiquityDelivery.Device) -> JSON {
        [
            "id": .string(device.id), "name": .string(device.name),
            "isThis": .boolean(device.isThisDevice),
            "seen": .string(Phrase.isoTime(device.lastSeen.milliseconds)),
            "isCurrent": .boolean(device.isCurrent), "behind": .integer(device.changesBehind),
            "hasStore": .boolean(device.hasStore),
            "clockAhead": .seconds(device.clockAhead.map { Int64($0 * 1_000) }),
            "version": .optional(device.version),
        ]
    }

    /// Milliseconds as seconds.
    static func seconds(_ milliseconds: Int64?) -> JSON {
        milliseconds.map { .real(Double($0) / 1_000) } ?? .null
    }
}
