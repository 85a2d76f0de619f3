// SPDX-License-Identifier: Apache-2.0

/// The rights of a device that signs in with a code, or after another device has approved it.
package struct CredentialTerms: Hashable, Sendable {
    /// As ``DeviceRights/stores``.
    package var stores: Set<StoreIdentifier>?
    /// The lifetime of the device's credential, from the sign-in on; nil means until it is revoked.
    package var milliseconds: Int64?
    /// When the credential ends at the latest, in milliseconds since 1970 by the server's clock;
    /// nil means never.
    package var latestMilliseconds: Int64?

    package init(
        stores: Set<StoreIdentifier>? = nil, milliseconds: Int64? = nil,
        latestMilliseconds: Int64? = nil
    ) {
        self.stores = stores
        self.milliseconds = milliseconds
        self.latestMilliseconds = latestMilliseconds
    }

    /// A longer list would no longer confine anything.
    package static let storesMax = 64

    /// When the credential of a device that signs in now expires; nil means never.
    package func expiry(signingInAt now: Int64) -> Int64? {
        [milliseconds.map { now + $0 }, latestMilliseconds].compactMap(\.self).min()
    }
}

extension DeviceRights {
    /// The part of these terms that the device may grant to another one: no stores but its own, and
    /// no longer than its own credential is valid. Terms without stores or a time get its own.
    package func limiting(_ terms: CredentialTerms) -> CredentialTerms {
        var limited = terms
        if let own = stores { limited.stores = terms.stores?.intersection(own) ?? own }
        limited.latestMilliseconds = [terms.latestMilliseconds, expiresMilliseconds]
            .compactMap(\.self).min()
        return limited
    }
}
