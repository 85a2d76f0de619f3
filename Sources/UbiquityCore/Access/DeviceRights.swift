// SPDX-License-Identifier: Apache-2.0

/// What a device's credential lets it do.
package struct DeviceRights: Hashable, Sendable {
    package var name: DeviceName
    /// The stores that it reaches; nil: all of its account. A confined device reaches nothing else
    /// of its account but itself.
    package var stores: Set<StoreIdentifier>?
    /// When the credential ends, in the server's milliseconds since 1970; nil: when it is revoked.
    package var expires: Int64?

    package init(name: DeviceName, stores: Set<StoreIdentifier>? = nil, expires: Int64? = nil) {
        self.name = name
        self.stores = stores
        self.expires = expires
    }

    package var account: AccountID { name.account }
    package var isConfined: Bool { stores != nil }

    package func reaches(_ store: StoreIdentifier) -> Bool { stores?.contains(store) ?? true }

    package func hasExpired(at now: Int64) -> Bool { expires.map { $0 <= now } ?? false }
}
