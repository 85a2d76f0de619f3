// SPDX-License-Identifier: Apache-2.0

import Ubiquity
import UbiquityCore
import UbiquityWire

// The operator's view of a server, as it reports it. Times are the server's milliseconds since 1970.

/// An account with its devices.
struct ServerAccount: Hashable {
    var id: String
    var name: String
    var createdMilliseconds: Int64
    /// The oldest first.
    var devices: [ServerDevice]
    var limits: AccountLimits
}

/// The apps that a server accepts.
struct ServerApps: Hashable {
    struct App: Hashable {
        var identifier: String
        var registered: Int64
    }

    /// False if all apps are; nil if unknown, because no server is running on the data folder.
    var isRegisteredOnly: Bool?
    var apps: [App]
}

/// An entry of a server's audit log.
struct ServerAuditEntry: Hashable {
    var number: Int64
    var time: Int64
    /// Words of the protocol, which may gain new ones.
    var action: String
    /// Nil if there is none.
    var account: String?
    var device: String?
    var actor: String
    var actorDevice: String?
    /// The number of occurrences, and the time of the last one. A server of version 0.1.0 has an
    /// entry for each occurrence.
    var count: Int64
    var last: Int64
    /// An address, or the change of a limit.
    var detail: String?
}

// MARK: - On the wire

extension ServerAccount {
    init(_ wire: WireAccount) {
        self.init(
            id: wire.id, name: wire.name,
            createdMilliseconds: Int64(clamping: wire.createdMilliseconds),
            devices: wire.devices.map(ServerDevice.init),
            limits: AccountLimits(ofServer: wire.limits))
    }
}

extension AccountLimits {
    /// The limits in a server's answer. There are none if a newer server allows one that is out of
    /// this program's range.
    init(ofServer wire: WireAccountLimits) {
        self = (try? AccountLimits(wire)) ?? AccountLimits()
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

extension ServerAuditEntry {
    init(_ wire: WireAuditTrail.Entry) {
        func text(_ text: String) -> String? { text.isEmpty ? nil : text }
        self.init(
            number: Int64(clamping: wire.number), time: Int64(clamping: wire.milliseconds),
            action: wire.deed, account: text(wire.account), device: text(wire.device),
            actor: wire.actor, actorDevice: text(wire.actorDevice),
            count: max(1, Int64(clamping: wire.count)),
            last: Int64(clamping: max(wire.milliseconds, wire.lastMilliseconds)),
            detail: text(wire.detail))
    }
}
