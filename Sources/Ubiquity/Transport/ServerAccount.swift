// SPDX-License-Identifier: Apache-2.0

internal import UbiquityWire

/// An account as its server shows it. Times are the server's milliseconds since 1970.
package struct ServerAccount: Hashable, Sendable {
    package var id: String
    package var name: String
    package var created: Int64
    /// The oldest first.
    package var devices: [ServerDevice]

    package init(id: String, name: String, created: Int64, devices: [ServerDevice]) {
        self.id = id
        self.name = name
        self.created = created
        self.devices = devices
    }
}

/// A device as its server shows it.
package struct ServerDevice: Hashable, Sendable {
    /// 16 hexadecimal digits.
    package var id: String
    package var name: String
    package var created: Int64
    package var seen: Int64
    /// Nil: its credential is good until it is revoked.
    package var expires: Int64?
    /// The stores to which it is confined, in their order; empty: it is not.
    package var stores: [String]

    package init(
        id: String, name: String, created: Int64, seen: Int64, expires: Int64? = nil,
        stores: [String] = []
    ) {
        self.id = id
        self.name = name
        self.created = created
        self.seen = seen
        self.expires = expires
        self.stores = stores
    }
}

/// Which apps a server takes.
package struct ServerApps: Hashable, Sendable {
    package struct App: Hashable, Sendable {
        package var identifier: String
        package var registered: Int64

        package init(identifier: String, registered: Int64) {
            self.identifier = identifier
            self.registered = registered
        }
    }

    /// False: all; nil: not known, for a data folder does not say how its server is started.
    package var isRegisteredOnly: Bool?
    package var apps: [App]

    package init(isRegisteredOnly: Bool?, apps: [App]) {
        self.isRegisteredOnly = isRegisteredOnly
        self.apps = apps
    }
}

/// A line of a server's audit trail.
package struct ServerDeed: Hashable, Sendable {
    package var number: Int64
    package var time: Int64
    /// Words of the protocol, which may have new ones.
    package var deed: String
    package var actor: String
    /// Nil: none.
    package var account: String?
    package var device: String?
    package var actorDevice: String?

    package init(
        number: Int64, time: Int64, deed: String, account: String?, device: String?,
        actor: String, actorDevice: String?
    ) {
        self.number = number
        self.time = time
        self.deed = deed
        self.account = account
        self.device = device
        self.actor = actor
        self.actorDevice = actorDevice
    }
}

extension ServerAccount {
    init(_ wire: WireAccount) {
        self.init(
            id: wire.id, name: wire.name, created: Int64(clamping: wire.createdMilliseconds),
            devices: wire.devices.map(ServerDevice.init))
    }
}

extension ServerDevice {
    init(_ wire: WireDevice) {
        let expires = Int64(clamping: wire.expiresMilliseconds)
        self.init(
            id: wire.id, name: wire.name, created: Int64(clamping: wire.createdMilliseconds),
            seen: Int64(clamping: wire.seenMilliseconds), expires: expires == 0 ? nil : expires,
            stores: wire.stores)
    }
}

extension ServerApps {
    init(_ wire: WireAppList) {
        self.init(
            isRegisteredOnly: wire.registeredOnly,
            apps: wire.apps.map {
                App(
                    identifier: $0.identifier,
                    registered: Int64(clamping: $0.registeredMilliseconds))
            })
    }
}

extension ServerDeed {
    init(_ wire: WireAuditTrail.Entry) {
        func text(_ text: String) -> String? { text.isEmpty ? nil : text }
        self.init(
            number: Int64(clamping: wire.number), time: Int64(clamping: wire.milliseconds),
            deed: wire.deed, account: text(wire.account), device: text(wire.device),
            actor: wire.actor, actorDevice: text(wire.actorDevice))
    }
}
