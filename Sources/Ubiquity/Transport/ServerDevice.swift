// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore
internal import UbiquityWire

/// A device as reported by its server.
package struct ServerDevice: Hashable, Sendable {
    /// 16 hexadecimal digits.
    package var id: String
    package var name: String
    package var created: Int64
    package var seen: Int64
    /// Nil if its credential is valid until it is revoked.
    package var expires: Int64?
    /// The stores to which it is confined, sorted; empty if it is not.
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

extension ServerDevice {
    init(_ wire: WireDevice) {
        let expires = Int64(clamping: wire.expiresMilliseconds)
        self.init(
            id: wire.id, name: wire.name, created: Int64(clamping: wire.createdMilliseconds),
            seen: Int64(clamping: wire.seenMilliseconds), expires: expires == 0 ? nil : expires,
            stores: wire.stores)
    }

}

extension ServerRequest {
    /// Sends a request for an account's devices.
    func devices() async throws(LinkFailure) -> [ServerDevice] {
        var request = self
        request.bounds = .list
        return try await request.answer(WireDeviceList.self, .list) {
            $0.devices.map(ServerDevice.init)
        }
    }
}
