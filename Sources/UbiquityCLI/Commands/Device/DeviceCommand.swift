// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct DeviceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "device",
        abstract: "List, rename and revoke an account's devices.",
        discussion: """
            Uses this device's own sign-in; server operators give --account and the options of \
            `ubiquity account`. A device is named by its ID or the beginning of that, or by its \
            name if only one has it.
            """,
        subcommands: [List.self, Rename.self, Revoke.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the signed-in devices.",
            discussion: """
                `ubiquity delivery` shows which of them have a store's changes.

                JSON: a list of {"id", "name", "created", "seen", "expires", "stores", \
                "clockAhead", "version", "isThis"}; "expires" is null for a credential that is \
                valid until it is revoked; "stores" lists those to which the device is confined, \
                and is null if it is not confined; "clockAhead" is in seconds; it and "version" \
                are null if the device has not said.
                """)

        @OptionGroup var options: DeviceOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let (devices, own) = try await options.withAccount { account in
                (try await account.devices(), account.own?.device)
            }
            if own != nil { SeenNames.remember(devices: devices.map(\.name), in: options.home) }
            let rows = devices.map { device in
                [
                    device.name.listed + (device.id == own ? " (this one)" : ""),
                    device.id.shortID,
                    Phrase.time(device.createdMilliseconds), Phrase.time(device.seenMilliseconds),
                    Phrase.clock(device.clockAheadMilliseconds), device.version ?? "unknown",
                    device.limits ?? "none",
                ]
            }
            let header = ["NAME", "ID", "SIGNED IN", "LAST SEEN", "CLOCK", "VERSION", "LIMITS"]
            json.print(
                devices.map { JSON.device($0, own: own) }, or: Table(header: header, rows: rows),
                ifEmpty: "No devices are signed in.")
        }
    }

    struct Rename: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Rename a device.",
            discussion: """
                Asks if another device of the account has the name.

                JSON: like an item of the list.
                """)

        @Argument(
            help: "The device's ID or name.", completion: Completions.devices, transform: notEmpty)
        var device: String
        @Argument(help: "Its new name.", transform: notEmpty) var name: String
        @Flag(help: "Do not ask.") var yes = false
        @OptionGroup var options: DeviceOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let (renamed, own) = try await options.withAccount { account in
                let id = try await account.find(device)
                try confirm(
                    try await account.devices().first {
                        $0.name == name && $0.id != id.description
                    })
                return (try await account.rename(id, to: name), account.own?.device)
            }
            json.print(
                .device(renamed, own: own),
                or: "Renamed the device \(renamed.id.shortID) to \(renamed.name).")
        }

        private func confirm(_ other: ServerDevice?) throws(Failure) {
            guard let other else { return }
            try Question.confirm(
                "The device \(other.id.shortID) is called \(name) already. Give both the name?",
                isGiven: yes, otherwise: "nothing was renamed")
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Sign another device out permanently, for example one that was lost.",
            discussion: """
                Its credential is no longer valid, and its connections end within a second. What \
                it has already received stays on it. To sign in again, it needs a new code. Codes \
                and approvals that it has given are void; devices that have signed in with them \
                are not signed out.

                With --others, all devices of this device's account are signed out but this one.

                JSON: {"id"}; with --others, a list of the devices' IDs.
                """)

        @Argument(
            help: "The device's ID or name.", completion: Completions.devices, transform: notEmpty)
        var device: String?
        @Flag(help: "All devices of the account but this one.") var others = false
        @Flag(help: "Yes, sign them out.") var yes = false
        @OptionGroup var options: DeviceOptions
        @OptionGroup var json: JSONOption

        func validate() throws {
            guard (device == nil) == others else {
                throw ValidationError("Give either a device or --others.")
            }
            if others {
                try refuse(
                    given(("--account", options.account != nil)),
                    "with --others, which is for the account that this device is signed in to.")
            }
        }

        func run() async throws {
            guard let device else { return try await revokeOthers() }
            let id = try await options.withAccount { account in
                let id = try await account.find(device)
                try await account.revoke(id)
                return id
            }
            try offerRotation(isOwn: options.account == nil)
            json.print(["id": .string(id.description)], or: "Signed out the device \(device).")
        }

        private func offerRotation(isOwn: Bool) throws {
            guard isOwn, try options.home.open().load().keyring != nil else { return }
            Output.note(
                "Whoever has a device that was unlocked still has the account's key; "
                    + "`ubiquity encryption rotate` changes it.")
        }

        private func revokeOthers() async throws {
            let own = try options.home.signedIn().account
            try Question.confirm(
                "Sign out all other devices of the account?", isGiven: yes,
                otherwise: "nothing was signed out")
            let revoked = try await AccountClient.signOutOthers(own)
            if !revoked.isEmpty { try offerRotation(isOwn: true) }
            if json.isOn { return Output.print(.array(revoked.map { .string($0.id) })) }
            guard !revoked.isEmpty else { return Output.print("No other device was signed in.") }
            for device in revoked {
                Output.print("Signed out \(device.name) (\(device.id.shortID)).")
            }
        }
    }
}

extension ServerDevice {
    /// The limits of its credential, for people; nil if it has none.
    var limits: String? {
        var limits: [String] = []
        if let expiresMilliseconds { limits.append("until \(Phrase.time(expiresMilliseconds))") }
        if !stores.isEmpty { limits.append("only \(stores.joined(separator: ", "))") }
        return limits.isEmpty ? nil : limits.joined(separator: "; ")
    }
}

extension JSON {
    static func device(_ device: ServerDevice, own: String? = nil) -> JSON {
        [
            "id": .string(device.id), "name": .string(device.name),
            "created": .string(Phrase.isoTime(device.createdMilliseconds)),
            "seen": .string(Phrase.isoTime(device.seenMilliseconds)),
            "expires": .optional(device.expiresMilliseconds.map(Phrase.isoTime)),
            "stores": device.stores.isEmpty ? .null : .array(device.stores.map(JSON.string)),
            "clockAhead": .seconds(device.clockAheadMilliseconds),
            "version": .optional(device.version), "isThis": .boolean(device.id == own),
        ]
    }
}
