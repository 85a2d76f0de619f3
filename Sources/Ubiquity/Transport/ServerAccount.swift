// SPDX-License-Identifier: Apache-2.0

internal import UbiquityWire

/// An account as reported by its server. Times are the server's milliseconds since 1970.
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

extension ServerAccount {
    init(_ wire: WireAccount) {
        self.init(
            id: wire.id, name: wire.name, created: Int64(clamping: wire.createdMilliseconds),
            devices: wire.devices.map(ServerDevice.init))
    }
}
