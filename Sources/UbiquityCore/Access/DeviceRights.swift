// SPDX-License-Identifier: Apache-2.0

/// A permanent identifier of an account, independent of its name: 16 random hexadecimal digits.
package struct AccountID: Hashable, Sendable, CustomStringConvertible {
    package let string: String

    package init(_ string: String) { self.string = string }

    package var description: String { string }
}

/// An account and a device ID, which is unique within its account only.
package struct DeviceReference: Hashable, Sendable {
    package var account: AccountID
    package var id: DeviceID

    package init(account: AccountID, id: DeviceID) {
        self.account = account
        self.id = id
    }
}

/// The rights that a device's credential grants.
package struct DeviceRights: Hashable, Sendable {
    package var reference: DeviceReference
    /// The stores that it may use; nil means all of its account. Of the rest of its account, a
    /// confined device can only reach itself.
    package var stores: Set<StoreIdentifier>?
    /// When the credential expires, in milliseconds since 1970 by the server's clock; nil means
    /// never.
    package var expires: Int64?

    package init(
        reference: DeviceReference, stores: Set<StoreIdentifier>? = nil, expires: Int64? = nil
    ) {
        self.reference = reference
        self.stores = stores
        self.expires = expires
    }

    package var account: AccountID { reference.account }
    package var isConfined: Bool { stores != nil }

    package func reaches(_ store: StoreIdentifier) -> Bool { stores?.contains(store) ?? true }

    package func hasExpired(at now: Int64) -> Bool { expires.map { $0 <= now } ?? false }
}
