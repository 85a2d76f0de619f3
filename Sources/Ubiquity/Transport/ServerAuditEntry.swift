// SPDX-License-Identifier: Apache-2.0

internal import UbiquityWire

/// An entry of a server's audit log.
package struct ServerAuditEntry: Hashable, Sendable {
    package var number: Int64
    package var time: Int64
    /// Words of the protocol, which may gain new ones.
    package var action: String
    package var actor: String
    /// Nil if there is none.
    package var account: String?
    package var device: String?
    package var actorDevice: String?
    /// The number of occurrences, and the time of the last one. A server of version 0.1.0 has an
    /// entry for each occurrence.
    package var count: Int64
    package var last: Int64
    /// An address, or the change of a limit.
    package var detail: String?

    package init(
        number: Int64, time: Int64, action: String, account: String?, device: String?,
        actor: String, actorDevice: String?, count: Int64, last: Int64, detail: String?
    ) {
        self.number = number
        self.time = time
        self.action = action
        self.account = account
        self.device = device
        self.actor = actor
        self.actorDevice = actorDevice
        self.count = count
        self.last = last
        self.detail = detail
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
