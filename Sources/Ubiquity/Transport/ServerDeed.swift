// SPDX-License-Identifier: Apache-2.0

internal import UbiquityWire

/// An entry of a server's audit log.
package struct ServerDeed: Hashable, Sendable {
    package var number: Int64
    package var time: Int64
    /// Words of the protocol, which may gain new ones.
    package var deed: String
    package var actor: String
    /// Nil if there is none.
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

extension ServerDeed {
    init(_ wire: WireAuditTrail.Entry) {
        func text(_ text: String) -> String? { text.isEmpty ? nil : text }
        self.init(
            number: Int64(clamping: wire.number), time: Int64(clamping: wire.milliseconds),
            deed: wire.deed, account: text(wire.account), device: text(wire.device),
            actor: wire.actor, actorDevice: text(wire.actorDevice))
    }
}
